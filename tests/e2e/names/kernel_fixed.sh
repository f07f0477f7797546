#!/usr/bin/env bash
# A second thread reads the kernel's names. These recordings are golden ones, so recording needs no permission here. Their kept
# names are removed, so this machine's kernel is read. The names depend on the machine. All samples must be there, and a run
# without the thread must give the same.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc

recordings=0 with_thread=0
for dir in "$TESTS"/golden/perf/*/; do
	name=$(basename "$dir")
	cp "$dir/perf.data" "$T/perf.data"
	expected=$dir/expected fold=(fold)
	[ -e "$expected" ] || expected=$dir/cpu-clock.expected fold=(fold --event-filter cpu-clock)
	"$PROFCPU" "${fold[@]}" "$T/perf.data" >"$T/out" 2>"$T/err" || fail "$name: fold gave $?: $(cat "$T/err")"
	[ "$(weight_of "$T/out")" = "$(weight_of "$expected")" ] || fail "$name: other samples than perf's"
	recordings=$((recordings + 1))
	[[ $BUILD = *san ]] && continue
	without_threads "$PROFCPU" "${fold[@]}" "$T/perf.data" >"$T/out.alone" 2>"$T/err" || fail "$name: fold gave $?: $(cat "$T/err")"
	cmp "$T/out" "$T/out.alone" || fail "$name: without a thread there is something else"
	grep -q 'no thread for you' "$T/err" && with_thread=$((with_thread + 1))
done
[ "$recordings" -ge 10 ] || fail "only $recordings recordings"
# Those that begin with a sample of the kernel, and do not say that it was another one than runs here.
echo "$with_thread of $recordings ask for a thread"
[[ $BUILD = *san ]] || [ "$with_thread" -ge 5 ] || fail "they are read without the thread that is to be tried"
