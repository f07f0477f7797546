#!/usr/bin/env bash
# Text of perf script in all usual forms folds to the output of stackcollapse-perf.pl, byte for byte. Written as text
# and folded again, it gives the same.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"

G=$TESTS/golden/fold
cases=0
while read -r text name options; do
	# Status 1 means bad lines in the text, or no foldable sample.
	# shellcheck disable=SC2086 # options are words
	"$PROFCPU" fold $options -o "$T/out" "$G/$text.txt" 2>"$T/err" || [ $? = 1 ] || fail "fold $options $text.txt: $(cat "$T/err")"
	cmp "$G/$text.$name.folded" "$T/out" || fail "fold $options $text.txt differs"
	# shellcheck disable=SC2086
	"$PROFCPU" fold $options - <"$G/$text.txt" 2>/dev/null | cmp - "$T/out" || fail "fold $options - differs for $text.txt"
	cases=$((cases + 1))
done < <("$G/cases")
[ "$cases" -gt 30 ] || fail "only $cases cases"

sed 's/$/\r/' "$G/cpp.txt" >"$T/crlf.txt"
"$PROFCPU" fold "$T/crlf.txt" | cmp - "$G/cpp.plain.folded" || fail "lines that end in CR LF fold differently"

fails_with() { # PATTERN FILE: checks that fold of FILE fails with one line that matches
	"$PROFCPU" fold "$2" >"$T/out" 2>"$T/err" && fail "fold $2 gave 0"
	[ -s "$T/out" ] && fail "fold $2 wrote output"
	grep -q "$1" "$T/err" || fail "fold $2 printed: $(cat "$T/err")"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "fold $2 printed more than one line: $(cat "$T/err")"
}
fails_with "folded stacks already" "$G/cpp.plain.folded"
printf 'It was a bright cold day in April.\nThe clocks were striking thirteen.\n' >"$T/prose"
fails_with "not the text of perf script" "$T/prose"
: >"$T/empty"
fails_with "empty" "$T/empty"
printf '   app  12 [000] 1.5: 10 cycles:  7f00 f+0x1 (/bin/x)\n   app  12 [000] 1.6: 10 cycles:  7f00 f (/bin/x)\n' >"$T/flat"
fails_with "perf record -g" "$T/flat"
printf '\t  7f0012 f+0x1 (/bin/x)\n\t  7f0013 g+0x1 (/bin/x)\n\n' >"$T/threadless"
fails_with "comm" "$T/threadless"

"$PROFCPU" fold --names sideways "$G/cpp.txt" 2>/dev/null
[ $? = 2 ] || fail "a wrong --names is no usage error"
"$PROFCPU" fold --names full --all "$G/jit.txt" >"$T/full" || fail "--names full gave $?"
grep -q '^webapp;.*Work.Spin(int32)_\[j\] 1001001$' "$T/full" || fail "full names: $(cat "$T/full")"
