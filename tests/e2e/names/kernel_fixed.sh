#!/usr/bin/env bash
# A second thread reads the kernel's names. The recordings are golden ones, so the test needs no right to record. Without
# their stored names the names come from this machine's kernel. All samples must be there, and a run without the thread
# must give the same.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc

recordings=0 with_thread=0
for dir in "$TESTS"/golden/perf/*/; do
	name=$(basename "$dir")
	cp "$dir/perf.data" "$T/perf.data"
	expected=$dir/expected fold=(fold --names perf)
	[ -e "$expected" ] || expected=$dir/cpu-clock.expected fold=(fold --names perf --event-filter cpu-clock)
	"$PROFCPU" "${fold[@]}" "$T/perf.data" >"$T/out" 2>"$T/err" || fail "$name: fold gave $?: $(cat "$T/err")"
	[ "$(weight_of "$T/out")" = "$(weight_of "$expected")" ] || fail "$name: the weight differs from perf's"
	recordings=$((recordings + 1))
	[[ $BUILD = *san ]] && continue
	without_threads "$PROFCPU" "${fold[@]}" "$T/perf.data" >"$T/out.alone" 2>"$T/err" || fail "$name: fold gave $?: $(cat "$T/err")"
	cmp "$T/out" "$T/out.alone" || fail "$name: the output differs without a thread"
	grep -q 'no thread for you' "$T/err" && with_thread=$((with_thread + 1))
done
[ "$recordings" -ge 10 ] || fail "only $recordings recordings"
# A thread starts if the recording begins with a kernel sample and does not name another kernel than this machine's.
echo "$with_thread of $recordings recordings start a thread"
[[ $BUILD = *san ]] || [ "$with_thread" -ge 5 ] || fail "only $with_thread recordings start a thread"
