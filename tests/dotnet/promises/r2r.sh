# shellcheck shell=bash
# Names of precompiled code equal the runtime's own names for the same addresses. The runtime writes a jitdump of all methods
# that tests/dotnet/prepare makes it prepare. Each must be found, with the same name, beginning and end.

# r2r_compare LEAST COMMAND...: the methods that it prepares have the runtime's names. At least LEAST are compared, at most 0.1 %
# are missing.
r2r_compare() {
	local least=$1 records same missing wrong
	shift
	rm -rf dump && mkdir dump
	env DOTNET_PerfMapEnabled=2 DOTNET_PerfMapStubGranularity=4 DOTNET_PerfMapJitDumpPath="$T/dump" PREPARE_MAPS="$T/maps" \
		"$@" >prepare.log 2>&1 </dev/null || fail "$* gave $?: $(tail -n 5 prepare.log)"
	"$BUILD/helpers/r2r_names" compare maps dump/jit-*.dump >compare.log || fail "r2r_names compare gave $?"
	rm -rf dump
	read -r _ records _ same _ missing _ wrong < <(grep '^records ' compare.log)
	echo "$(tail -n 1 prepare.log); $records of the runtime's names: $same the same, $missing missing, $wrong differ"
	[ "$wrong" = 0 ] || fail "names differ from the runtime's: $(cat compare.log)"
	[ $((missing * 1000)) -le "$records" ] || fail "less than 99.9 % are found: $(cat compare.log)"
	[ "$records" -ge "$least" ] || fail "only $records methods were reported"
}

# framework METHODS LEAST: of the shared framework. Leaves $T/maps.
promise_framework() {
	r2r_compare "$2" env PREPARE_METHODS="$1" dotnet exec "$ROOT/build/dotnet/prepare/prepare.dll"
}

# read_time MS KIB: reads the tables of at least 100 images of the framework; a release build takes at most MS and KIB.
promise_read_time() {
	local framework files best kib
	framework=$(dirname "$(awk '/System.Private.CoreLib.dll$/ { print $6; exit }' maps)")
	files=("$framework"/*.dll "${framework/NETCore/AspNetCore}"/*.dll)
	for _ in 1 2 3; do
		"$BUILD/helpers/r2r_names" time "${files[@]}" || fail "not all files of the framework can be read"
	done >read.times
	best=$(sort -n read.times | head -n 1)
	[[ $best =~ ^[0-9.]+\ ms\ [0-9]{3,}\ images ]] || fail "not all of the framework's images: $best"
	echo "tables of the ${#files[@]} files of the framework: $best"
	kib=$("$BUILD/helpers/peak_kib" "$BUILD/helpers/r2r_names" time "${files[@]}" 2>&1 >/dev/null | tail -n 1)
	if is_release; then
		at_least "$1" "${best%% *}" || fail "reading them took ${best%% *} ms"
		[ "$kib" -le "$2" ] || fail "reading them took $kib KiB"
	fi
}

# program METHODS LEAST: of a published program, in which prepare runs as a start-up hook.
promise_program() {
	local hook=$ROOT/build/dotnet/prepare/prepare.dll shared=${T%/*}/hook
	if [[ $PROGRAM != *-net10* ]]; then
		hook=$shared/prepare.dll
		# Build a copy, because nuget.config beside the source forbids to restore.
		[ -e "$hook" ] || {
			mkdir -p source && cp "$ROOT"/tests/dotnet/prepare/*.cs* source &&
				flock "${T%/*}/hook.lock" dotnet build -nologo -v quiet -c Release -p:TargetNet=8.0 -o "$shared" source >hook.log 2>&1
		} || skip "needs the .NET 8 reference packs: $(grep -m 1 error hook.log)"
	fi
	r2r_compare "$2" env PREPARE_METHODS="$1" DOTNET_STARTUP_HOOKS="$hook" \
		PREPARE_ASSEMBLIES="wide-net System.Linq System.Text System.Collections System.Private.CoreLib" "$APP/wide-net"
}
