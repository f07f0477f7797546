#!/usr/bin/env bash
# Recordings of perf 5.10, 6.1 and 6.12 fold to the result of their own perf script and stackcollapse-perf.pl.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
checked=0
for dir in "$TESTS"/golden/perf/*/; do
	for expected in "$dir"*expected; do
		filter=()
		event=$(basename "$expected")
		event=${event%expected}
		event=${event%.}
		[ -z "$event" ] || filter=(--event-filter "$event")
		"$PROFCPU" fold --offline --names perf "${filter[@]}" "$dir" >"$T/folded" 2>"$T/err" || fail "$dir: $(cat "$T/err")"
		cmp "$T/folded" "$expected" || fail "$dir $event: $(diff "$T/folded" "$expected" | head -n 5)"
		# Samples contain PIDs although perf's text does not, for which the script writes -?.
		"$PROFCPU" fold --offline --names perf --pid "${filter[@]}" "$dir" >"$T/pids" 2>"$T/err" || fail "$dir --pid: $(cat "$T/err")"
		grep -vE '^[^;]*-[0-9]+(;| )' "$T/pids" && fail "$dir --pid: lines without a PID"
		checked=$((checked + 1))
	done
done
[ "$checked" -ge 13 ] || fail "only $checked recordings"
