#!/usr/bin/env bash
# Names of JIT-compiled code on a nearly full disk: collect and each later command report missing names, and samples are
# kept.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need mount
need_root
need_published lines-net10-portable
need_sampling
mkdir small
mount -t tmpfs -o size=900k none small 2>/dev/null || skip "needs the right to mount"
T_MOUNTED+=("$T/small")
program=(dotnet exec "$PUBLISHED/lines-net10-portable/lines.dll" 1.5)

survives "$PROFCPU" collect --jit-names=memory --record-only -F 199 -o small/rec -- "${program[@]}"
[ "$SURVIVED" = 1 ] || fail "exit $SURVIVED instead of 1 with missing names: $(cat refused)"
grep -q 'warning: process [0-9]* (.*): names come from .*; they cannot all be written to the recording: No space left on device; make room or choose another directory with -o$' refused ||
	fail "the process or the reason of missing names is not reported: $(cat refused)"
lost='incomplete: names of JIT-compiled code could not all be written$'
for named in small/rec small/rec/perf.data; do
	survives "$PROFCPU" fold "$named"
	[ "$SURVIVED" = 1 ] || fail "fold $named: exit $SURVIVED instead of 1"
	[ "$(grep -c "warning: small/rec: $lost" refused)" = 1 ] || fail "fold $named: missing names are not reported: $(cat refused)"
done
# With room again it is post-processed, and its archive reports the same.
for arguments in 'postprocess -o taken small/rec' 'fold taken/prof.tar.gz'; do
	# shellcheck disable=SC2086 # several words
	survives "$PROFCPU" $arguments
	[ "$SURVIVED" = 1 ] || fail "$arguments: exit $SURVIVED"
	grep -q "$lost" refused || fail "$arguments: $(cat refused)"
done
at_least "$(awk '{ n += $NF } END { print n }' taken/folded_stacks.out)" 100 || fail "samples were lost"

mount -o remount,size=4M small || fail "remount"
rm -r small/rec
record small/rec --jit-names=memory --record-only -F 199 -- "${program[@]}"
grep -q 'warning' collect.log && fail "a warning although all names fit: $(cat collect.log)"
"$PROFCPU" fold small/rec >folded 2>err || fail "fold gave $?: $(cat err)"
at_least "$(share_of folded ';Burning[.]Step[(]')" 50 || fail "names are missing with enough space"

# A file system that counts no blocks is not full.
mkdir uncounted
mount -t ramfs none uncounted || fail "mount"
T_MOUNTED+=("$T/uncounted")
record uncounted/rec --jit-names=memory --record-only -F 199 -- "${program[@]}"
"$PROFCPU" fold uncounted/rec >folded 2>err || fail "fold gave $?: $(cat err)"
at_least "$(share_of folded ';Burning[.]Step[(]')" 50 || fail "names are missing on a file system without block counts"
