#!/usr/bin/env bash
# A signal leaves no temporary directory behind while an archive is read, not even SIGKILL.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling

"$PROFCPU" collect -q -F 499 -o rec -- "$BUILD/helpers/workload" deep 20 1 >log 2>&1 || fail "collect: $(cat log)"
mkdir tmp
export TMPDIR=$T/tmp
size=$(stat -c %s rec/prof.tar.gz)
mkfifo input
is_unpacking() { ls -d tmp/profcpu-*; }
is_empty() { [ -z "$(ls tmp)" ]; }
for signal in INT TERM HUP QUIT XCPU USR1 ALRM PIPE KILL; do
	env --default-signal "$PROFCPU" fold - <input >folded 2>err &
	pid=$!
	exec 9>input
	head -c $((size * 9 / 10)) rec/prof.tar.gz >&9
	wait_for 20 is_unpacking || fail "$signal: nothing is unpacked: $(cat err)"
	kill -"$signal" $pid
	wait $pid
	status=$?
	exec 9>&-
	[ $status -gt 128 ] && [ "$(kill -l $status)" = $signal ] || fail "$signal: status $status: $(cat err)"
	wait_for 20 is_empty || fail "$signal left $(find tmp)"
done
"$PROFCPU" fold rec/prof.tar.gz >folded || fail "fold gave $?"
is_empty || fail "left at the end: $(find tmp)"
[ -s folded ] || fail "no stacks"
# No child remains that keeps an output of the command open.
timeout 20 bash -c '"$0" fold "$1" | cat >/dev/null' "$PROFCPU" rec/prof.tar.gz || fail "the output stays open"
exit 0
