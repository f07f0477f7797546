#!/usr/bin/env bash
# The names of precompiled .NET code are those that the runtime itself has for the same addresses: it writes a jitdump of all
# methods that a program has it prepare, and each must be found, with the same name, beginning and end. Of the shared framework, and
# of programs published with code of their own, in R2R_KINDS of ways ("r2r single"), for R2R_VERSIONS of .NET ("10"). And
# the tables of the whole framework are read in no time.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet prepare
all=0

# compare NAME LEAST COMMAND...: what it prepares is named as the runtime does, LEAST methods and more.
compare() {
	local name=$1 least=$2 records same missing wrong
	shift 2
	mkdir -p "$T/dump"
	env DOTNET_PerfMapEnabled=2 DOTNET_PerfMapStubGranularity=4 DOTNET_PerfMapJitDumpPath="$T/dump" PREPARE_MAPS="$T/maps" \
		"$@" >"$T/prepare.log" 2>&1 </dev/null || fail "$name: $* gave $?: $(tail -n 5 "$T/prepare.log")"
	"$BUILD/helpers/r2r_names" compare "$T/maps" "$T"/dump/jit-*.dump >"$T/compare.log" || fail "$name: r2r_names compare gave $?"
	rm -rf "$T/dump"
	read -r _ records _ same _ missing _ wrong < <(grep '^records ' "$T/compare.log")
	echo "$name: $(tail -n 1 "$T/prepare.log"); $records of the runtime's names: $same the same, $missing missing, $wrong other ones"
	[ "$wrong" = 0 ] || fail "$name: other names than the runtime's: $(cat "$T/compare.log")"
	[ $((missing * 1000)) -le "$records" ] || fail "$name: less than 99.9 % are there: $(cat "$T/compare.log")"
	[ "$records" -ge "$least" ] || fail "$name: only $records methods were reported"
	all=$((all + same))
}

compare "shared framework" 20000 env PREPARE_METHODS="${R2R_METHODS:-32000}" dotnet exec "$ROOT/build/dotnet/prepare/prepare.dll"

framework=$(dirname "$(awk '/System.Private.CoreLib.dll$/ { print $6; exit }' "$T/maps")")
files=("$framework"/*.dll "${framework/NETCore/AspNetCore}"/*.dll)
for _ in 1 2 3; do
	"$BUILD/helpers/r2r_names" time "${files[@]}" || fail "the framework's files cannot all be read"
done >"$T/times"
best=$(sort -n "$T/times" | head -n 1)
[[ $best =~ ^[0-9.]+\ ms\ [0-9]{3,}\ images ]] || fail "not all of the framework's images: $best"
echo "tables of the ${#files[@]} files of the framework: $best"
kib=$("$BUILD/helpers/peak_kib" "$BUILD/helpers/r2r_names" time "${files[@]}" 2>&1 >/dev/null | tail -n 1)
if [ "$BUILD" = "$ROOT/build" ]; then
	at_least 300 "${best%% *}" || fail "reading them took ${best%% *} ms"
	[ "$kib" -le 204800 ] || fail "reading them took $kib KiB"
fi

# The same of programs that are not installed beside a runtime. The program that prepares begins in them as a start-up hook.
for version in ${R2R_VERSIONS:-10}; do
	hook=$ROOT/build/dotnet/prepare/prepare.dll
	if [ "$version" != 10 ]; then
		hook=$T/hook/prepare.dll
		# A copy: beside the source is a nuget.config that lets nothing be restored.
		[ -e "$hook" ] || {
			mkdir "$T/source" && cp "$ROOT"/tests/dotnet/prepare/*.cs* "$T/source" &&
				dotnet build -nologo -v quiet -c Release -p:TargetNet=8.0 -o "$T/hook" "$T/source" >"$T/hook.log" 2>&1
		} || skip "needs what .NET 8 programs are compiled with: $(grep -m 1 error "$T/hook.log")"
	fi
	for kind in ${R2R_KINDS:-r2r single}; do
		name=wide-net-net$version-$kind
		"$ROOT/tests/dotnet/publish" "$name" >"$T/publish.log" || skip "needs $name: $(cat "$T/publish.log")"
		compare "$name" 5000 env PREPARE_METHODS="${R2R_METHODS:-10000}" DOTNET_STARTUP_HOOKS="$hook" \
			PREPARE_ASSEMBLIES="wide-net System.Linq System.Text System.Collections System.Private.CoreLib" \
			"$ROOT/build/publish/$name/wide-net"
	done
done
echo "$all names in all"
