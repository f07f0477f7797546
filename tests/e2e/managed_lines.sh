#!/usr/bin/env bash
# Source lines of managed methods are those that System.Diagnostics.StackTrace and System.Reflection.Metadata have: by IL, from a
# PDB beside the assembly and from one in it, and by the places of precompiled code. A recording of such code shows them.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need dotnet
dotnet --list-sdks | grep -q '^10\.' || skip "needs the .NET 10 SDK"
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 MSBUILDDISABLENODEREUSE=1
lines=$BUILD/helpers/managed_lines

# Without packages from anywhere: the source has a nuget.config that lets nothing be restored.
for type in portable embedded; do
	cp -r "$TESTS/dotnet/lines" "$type"
	dotnet build -nologo -v quiet -c Release -p:DebugType="$type" -o "$type/out" "$type" >build.log 2>&1 ||
		fail "$type: $(grep -m 1 error build.log)"
	dotnet exec "$type/out/lines.dll" >theirs || fail "$type: lines.dll gave $?"
	[ "$(grep -c '^frame' theirs)" -gt 25 ] || fail "$type: too few frames"
	[ "$(grep -c '^point' theirs)" -gt 80 ] || fail "$type: too few points"
	"$lines" "$type/out/lines.dll" <theirs >ours || fail "$type: managed_lines gave $?"
	cmp theirs ours || {
		diff theirs ours | head
		fail "$type: other lines than the runtime's"
	}
	echo "$type: $(wc -l <ours) places have the runtime's lines"
done
[ ! -e embedded/out/lines.pdb ] || fail "the embedded PDB is a file"
# Another build's PDB is not taken.
cp portable/out/lines.dll .
rm -rf portable/obj && printf 'class X { }' >portable/X.cs
dotnet build -nologo -v quiet -c Release -o other portable >build.log 2>&1 || fail "$(grep -m 1 error build.log)"
cp other/lines.pdb .
"$lines" lines.dll </dev/null 2>err && fail "another build's PDB was taken"
grep -q 'No such file' err || fail "$(cat err)"

# Precompiled: of .NET 10, and where its packages are to be had of .NET 8, which keeps the places in another way.
for version in 10 8; do
	mkdir "r2r$version" && cp "$TESTS"/dotnet/lines/*.cs* "r2r$version"
	publish=(dotnet publish -nologo -v quiet -c Release -r linux-x64 --self-contained -p:UseAppHost=true -p:TargetNet="$version.0"
		-p:PublishReadyToRun=true -o "r2r$version/out" "r2r$version")
	"${publish[@]}" >build.log 2>&1 ||
		"${publish[@]}" -p:RuntimeFrameworkVersion="$(sed -n 's/.* NU1102: .*Nearest version: \([0-9.]*\) .*/\1/p' build.log | head -n 1)" \
			>build.log 2>&1 || skip "needs what .NET $version programs are precompiled with: $(grep -m 1 error build.log)"
	# Instances of generic methods have code of their own each, and the runtime does not say which one a frame is of.
	DOTNET_TieredCompilation=0 "r2r$version/out/lines" >out || fail "r2r$version: gave $?"
	grep '^frame' out | sed 's/^frame/native/' | sort -u >theirs
	"$lines" "r2r$version/out/lines.dll" <theirs >ours || fail "r2r$version: managed_lines gave $?"
	paste -d ' ' theirs ours |
		awk '$10 == "unknown" { next } { n++ } $5 != $10 { print; bad = 1 } END { print n; exit bad || n < 15 }' >same ||
		fail "r2r$version: other lines than the runtime's: $(cat same)"
	echo "r2r$version: $(tail -n 1 same) places in precompiled code have the runtime's lines"
done

need_sampling
record rec -F 499 --lines -- env DOTNET_TieredCompilation=0 r2r10/out/lines 3
"$PROFCPU" fold --names full --lines rec >folded || fail "fold gave $?"
burns=$(grep -n 'the line that burns' "$TESTS/dotnet/lines/Program.cs" | cut -d : -f 1)
hot=$(sed -n 's/.*;Burning\.Step([^;]*):Program\.cs:\([0-9]*\) [0-9]*$/\1/p' folded | sort -u | tr '\n' ' ')
[ -n "$hot" ] || fail "no lines of precompiled code: $(grep -m 3 Burning folded)"
for line in $hot; do
	[ $((line - burns)) -ge -3 ] && [ $((line - burns)) -le 2 ] || fail "line $line is none of Step's"
done
mv r2r10 gone
"$PROFCPU" fold --offline --names full --lines rec 2>err | cmp folded || fail "other lines elsewhere"
[ ! -s err ] || fail "$(cat err)"
