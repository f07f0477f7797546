#!/usr/bin/env bash
# A terminal without a reader, or with stopped output, does not delay the recording.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
start_shares 60
size() { stat -c %s rec/perf.data 2>/dev/null || echo 0; }
grows() { [ "$(size)" -gt "$before" ]; }

start tty "$BUILD/helpers/stalled_tty" "$PROFCPU" collect -p "$SHARES_PID" -F 499 -d 60 -o rec
tty=$STARTED
wait_for 20 [ -s rec/manifest.json ] || fail "the recording did not begin"
pid=$(head -n 1 tty.log)
# Longer than it takes to fill the terminal's buffer.
for ((i = 0; i < 6; i++)); do
	before=$(size)
	sleep 1.2
	# The recorder writes once a second, on a busy machine later. If it waits for the terminal, it waits for ever.
	wait_for 10 grows || fail "perf.data does not grow in round $i: the recorder waits for the terminal"
done
kill -INT "$pid"
kill -USR1 "$tty"
wait "$tty" || fail "collect: exit $?"
at_least "$(share_of rec/folded_stacks.out ';work;')" 80 || fail "stacks of the workload are missing"
