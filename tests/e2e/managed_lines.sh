#!/usr/bin/env bash
# Source lines of managed methods are those that System.Diagnostics.StackTrace and System.Reflection.Metadata have: by IL, from a
# PDB beside the assembly and from one in it, and by the places of precompiled code. A recording of such code shows them.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_published lines-net10-{portable,embedded,other,r2r} lines-net8-r2r
lines=$BUILD/helpers/managed_lines

for type in portable embedded; do
	app=$PUBLISHED/lines-net10-$type
	dotnet exec "$app/lines.dll" >theirs || fail "$type: lines.dll gave $?"
	[ "$(grep -c '^frame' theirs)" -gt 25 ] || fail "$type: too few frames"
	[ "$(grep -c '^point' theirs)" -gt 80 ] || fail "$type: too few points"
	"$lines" "$app/lines.dll" <theirs >ours || fail "$type: managed_lines gave $?"
	cmp theirs ours || {
		diff theirs ours | head
		fail "$type: other lines than the runtime's"
	}
	echo "$type: $(wc -l <ours) places have the runtime's lines"
done
[ ! -e "$app/lines.pdb" ] || fail "the embedded PDB is a file"
# Another build's PDB is not taken.
cp "$PUBLISHED"/lines-net10-portable/lines.dll "$PUBLISHED"/lines-net10-other/lines.pdb .
"$lines" lines.dll </dev/null 2>err && fail "another build's PDB was taken"
grep -q 'No such file' err || fail "$(cat err)"

# Precompiled: of .NET 10, and of .NET 8, which keeps the places in another way.
for version in 10 8; do
	app=$PUBLISHED/lines-net$version-r2r
	# Instances of generic methods have code of their own each, and the runtime does not say which one a frame is of.
	DOTNET_TieredCompilation=0 "$app/lines" >out || fail "r2r$version: gave $?"
	grep '^frame' out | sed 's/^frame/native/' | sort -u >theirs
	"$lines" "$app/lines.dll" <theirs >ours || fail "r2r$version: managed_lines gave $?"
	paste -d ' ' theirs ours |
		awk '$10 == "unknown" { next } { n++ } $5 != $10 { print; bad = 1 } END { print n; exit bad || n < 15 }' >same ||
		fail "r2r$version: other lines than the runtime's: $(cat same)"
	echo "r2r$version: $(tail -n 1 same) places in precompiled code have the runtime's lines"
done

need_sampling
cp -r "$PUBLISHED/lines-net10-r2r" r2r10
record rec -F 499 --lines -- env DOTNET_TieredCompilation=0 r2r10/lines 3
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
