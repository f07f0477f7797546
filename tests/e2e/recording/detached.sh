#!/usr/bin/env bash
# A recording ends normally and makes its outputs even if its terminal, pipes or inherited descriptors fail.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_sampling
start_shares 60

whole() { # DIR
	local f
	for f in perf.data flamegraph.svg folded_stacks.out perf_script.out prof.tar.gz; do
		[ -s "$1/$f" ] || fail "$1 has no $f: $(cat "$T/err" 2>/dev/null)"
	done
	grep -q '"finished": true' "$1/manifest.json" || fail "$1 is not finished"
}

echo "closed descriptors"
"$PROFCPU" collect -q --record-only -p "$SHARES_PID" -d 60 -o closed <&- >&- 2>&- &
pid=$!
wait_for 20 test -s closed/manifest.json || fail "the recording did not start"
for fd in 0 1 2; do
	[ "$(readlink "/proc/$pid/fd/$fd")" = /dev/null ] || fail "its descriptor $fd is $(readlink "/proc/$pid/fd/$fd")"
done
kill -TERM "$pid"
wait "$pid" || fail "exit $?"
"$PROFCPU" collect -p "$SHARES_PID" -d 0.5 -o deaf 2>&- >out || fail "exit $? with a closed stderr"
whole deaf
"$PROFCPU" fold deaf >&- 2>"$T/err" && fail "output to a closed stdout was no error"

echo "a stopped terminal"
python3 - "$PROFCPU" "$SHARES_PID" <<'EOF' || fail "the recorder waits for its terminal"
import os, pty, subprocess, sys, termios, time
master, slave = pty.openpty()
p = subprocess.Popen([sys.argv[1], "collect", "--record-only", "-p", sys.argv[2], "-d", "3", "-o", "stopped"], stderr=slave, stdout=subprocess.DEVNULL)
time.sleep(1)
termios.tcflow(slave, termios.TCOOFF)
finished, end = False, time.monotonic() + 20
while not finished and time.monotonic() < end: # waits for the recording while the terminal is stopped
    time.sleep(0.1)
    if os.path.exists("stopped/manifest.json"):
        finished = '"finished": true' in open("stopped/manifest.json").read()
termios.tcflow(slave, termios.TCOON)
p.wait(20)
sys.exit(p.returncode != 0 or not finished)
EOF

echo "the terminal goes away"
"$PROFCPU" collect -p "$SHARES_PID" -d 60 -o hangup >out 2>"$T/err" &
pid=$!
wait_for 20 test -s hangup/manifest.json || fail "the recording did not start"
sleep 1
kill -HUP "$pid" && kill -HUP "$pid" 2>/dev/null # the kernel sends one, the shell another
for ((i = 0; i < 100; i++)); do kill -HUP "$pid" 2>/dev/null || break; sleep 0.01; done
wait "$pid" || fail "SIGHUP: exit $?"
whole hangup
begun=$SECONDS
nohup "$PROFCPU" collect -p "$SHARES_PID" -d 3 -o nohup >out 2>"$T/err" &
pid=$!
wait_for 20 test -s nohup/manifest.json || fail "the recording did not start"
kill -HUP "$pid"
wait "$pid" || fail "nohup: exit $?"
whole nohup
[ $((SECONDS - begun)) -ge 3 ] || fail "SIGHUP ended a recording under nohup"

echo "pipes without a reader"
status=0
"$PROFCPU" collect -F 100000 -p "$SHARES_PID" -d 1 -o unread 2>&1 | true
status=${PIPESTATUS[0]}
[ "$status" = 0 ] || fail "a reader that leaves fails the recording: exit $status"
whole unread
"$PROFCPU" collect -q -d 5 -o signals -- sh -c "grep SigIgn /proc/self/status; yes | head -n 1" >out || fail "exit $?"
ignored=$((16#$(sed -n 's/^SigIgn:[[:space:]]*//p' out)))
[ $((ignored >> 12 & 1)) = 0 ] || fail "the command inherited that SIGPIPE is ignored"

echo "a limit of the file size"
status=0
# One program only: the maps of all others may be more than the limit.
(ulimit -f 2000 && exec "$PROFCPU" collect -F 20000 -p "$SHARES_PID" --jit-names=none -d 20 -o limited) >out 2>"$T/err" || status=$?
[ "$status" = 1 ] || fail "over the limit: exit $status"
grep -q 'perf.data: cannot be written further after [0-9.]* of 20 s: File too large; raise the limit' "$T/err" || fail "$(cat "$T/err")"
status=0
"$PROFCPU" fold limited >folded 2>"$T/err" || status=$?
[ "$status" = 1 ] && grep -q 'limited: incomplete: the recording ended after' "$T/err" || fail "the early end is not reported: exit $status: $(cat "$T/err")"
[ -s folded ] || fail "the written part cannot be read: $(cat "$T/err")"
