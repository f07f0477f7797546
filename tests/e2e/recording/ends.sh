#!/usr/bin/env bash
# perf opens every recording, however it ended: signals, kill -9, a full disk, wrong targets.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need python3
need_sampling
R=$BUILD/helpers/record_main
W=$BUILD/helpers/workload
value() { sed -n "s/^$1 //p" "$T/out"; }
opens() { # PERF_DATA
	perf_agrees "$T/script" script -i "$1" -F comm,tid,time,event,ip,sym
	perf_agrees /dev/null report -i "$1" --header-only
}
samples() { grep -c 'cpu-clock' "$T/script"; }
load() {
	start load "$W" deep 10 600
	wait_for 20 grep -q ready "$T/load.log" || fail "the workload did not start"
	load_pid=$STARTED
}

load
for signal in INT TERM HUP QUIT USR1 USR2 ALRM XCPU VTALRM PROF IO STKFLT PWR RTMIN+3 RTMAX; do
	echo "SIG$signal"
	# Not ignored, as by a shell or nohup.
	env --default-signal=HUP,QUIT,USR1,USR2,ALRM,XCPU,VTALRM,PROF,IO,STKFLT,PWR "$R" -q -p "$load_pid" -F 999 -o "sig$signal" >"$T/out" 2>"$T/err" &
	pid=$!
	wait_for 20 test -s "sig$signal/perf.data" || fail "the recording did not start: $(cat "$T/err")"
	wait_for_cpu "$load_pid" 500
	kill "-$signal" "$pid"
	wait "$pid" || fail "SIG$signal: exit $?: $(cat "$T/err")"
	[ "$(value end)" = signal ] || fail "$(cat "$T/out")"
	opens "sig$signal/perf.data"
	at_least "$(samples)" 100 || fail "$(samples) samples in 500 ms of CPU"
	grep -q '"finished": true' "sig$signal/manifest.json" || fail "the manifest is not marked as finished"
done

is_stopped() { grep -q '^State:.[Tt]' "/proc/$1/status"; }
# Both signals are sent to a stopped recorder, so that it receives them in the order of their numbers. The first ends
# the recording, the second the program.
two_signals() { # FIRST SECOND STATUS [COMMAND that starts the recorder]...
	local first=$1 second=$2 expected=$3 outer pid status=0
	shift 3
	rm -rf twice
	env --default-signal=HUP,INT,QUIT,TERM "$@" "$R" -q "${TARGET[@]}" -F 999 -o twice >"$T/out" 2>"$T/err" &
	outer=$! pid=$!
	wait_for 20 test -s twice/perf.data || fail "the recording did not start: $(cat "$T/err")"
	[ $# = 0 ] || pid=$(awk '{ print $1 }' "/proc/$outer/task/$outer/children")
	kill -STOP "$pid"
	wait_for 20 is_stopped "$pid" || fail "the recorder does not stop"
	kill "-$first" "$pid"
	kill "-$second" "$pid"
	kill -CONT "$pid"
	wait "$outer" || status=$?
	[ "$status" = "$expected" ] || fail "$first and $second: exit $status, not $expected: $(cat "$T/err")"
	grep -q 'the samples are in twice; run .profcpu postprocess twice.' "$T/err" || fail "$first and $second: $(cat "$T/err")"
	"$R" -R twice/perf.data >"$T/out" || fail "$first and $second: repair: $(cat "$T/out")"
	opens twice/perf.data
}
echo "a second signal ends it at once"
TARGET=(-p "$load_pid")
two_signals INT TERM 143
two_signals INT QUIT 131
two_signals HUP INT 130
two_signals ALRM TERM 143
two_signals USR1 USR2 140
if [ "$(id -u)" = 0 ]; then
	TARGET=(-a) # as PID 1 of a namespace, with /proc of ours
	two_signals INT TERM 143 unshare -p -f
	two_signals QUIT TERM 143 unshare -p -f

	echo "no process is left to a PID 1 that does not wait for it"
	unshare -p -f --mount-proc python3 - "$PROFCPU" <<'PY' >"$T/out" 2>&1 || fail "$(cat "$T/out")"
import os, subprocess, sys
subprocess.run([sys.argv[1], 'collect', '-q', '-a', '-F', '999', '-d', '0.5', '-o', 'below'], check=True)
left = [p for p in os.listdir('/proc') if p.isdigit() and p != '1']
if left:
    sys.exit('left: ' + ' '.join(open(f'/proc/{p}/stat').read() for p in left))
PY
fi

echo "the limit of CPU time"
# The kernel repeats SIGXCPU each second, also while the outputs are made.
limited=0
(
	ulimit -St 1
	exec "$PROFCPU" collect -q -a -F 20000 -d 120 -o limit
) >"$T/out" 2>"$T/err" || limited=$?
[ "$limited" = 0 ] || fail "RLIMIT_CPU: exit $limited: $(cat "$T/err")"
[ "$(grep -c 'recording: ended after [0-9.]* s: profcpu used up its CPU time; raise the limit' "$T/err")" = 1 ] || fail "$(cat "$T/err")"
grep -q '"finished": true' limit/manifest.json || fail "the manifest is not marked as finished"
[ -s limit/flamegraph.svg ] || fail "no picture"
grep -q burn_deep limit/folded_stacks.out || fail "no samples of the load up to the limit"
stop "$load_pid"
load

echo "the command gets SIGTERM, not a signal with a meaning of its own"
env --default-signal=USR1 "$R" -q -F 99 -o command -- bash -c 'trap "echo usr1; exit 1" USR1; trap "echo term >term; exit 0" TERM; echo ready >ready; while :; do sleep 0.05; done' >"$T/out" 2>"$T/err" &
pid=$!
wait_for 20 test -s ready || fail "the command did not start: $(cat "$T/err")"
kill -USR1 "$pid"
wait "$pid" || fail "USR1 with a command: exit $?: $(cat "$T/err")"
wait_for 20 test -s term || fail "the command did not get SIGTERM: $(cat "$T/out")"

echo "kill -9"
# With real-time priority the recorder does not wait for a CPU. If it did wait, the machine caused that part of the
# loss.
first=()
chrt -f 1 true 2>/dev/null && first=(chrt -f 1)
"${first[@]}" "$R" -q -p "$load_pid" -F 999 -o killed >"$T/out" 2>"$T/err" &
pid=$!
wait_for 20 test -s killed/perf.data || fail "the recording did not start: $(cat "$T/err")"
wait_for_cpu "$load_pid" 1500
ran=$(cpu_ns "$load_pid") # so that samples can be lost
until [ "$(cpu_ns "$load_pid")" -gt "$ran" ]; do :; done
late=$(cat "/proc/$pid/task/"*/schedstat | awk '{ ns += $2 } END { printf "%.3f", ns / 1e9 }')
before=$(awk '{ print $1 }' /proc/uptime)
kill -KILL "$pid"
wait "$pid" 2>/dev/null
grep -q '"finished": false' killed/manifest.json || fail "the manifest of a killed recording is marked as finished"
"$R" -R killed/perf.data >"$T/out" || fail "repair: $(cat "$T/out")"
opens killed/perf.data
last=$(sed -n 's/^.* \([0-9.]*\): *.*cpu-clock.*/\1/p' "$T/script" | tail -n 1)
echo "killed at $before, the last sample is of ${last:=0}; it waited $late s for a CPU"
awk -v last="$last" -v before="$before" -v late="$late" 'BEGIN { exit !(last > 0 && before - last <= 1 + late) }' ||
	fail "more than a second is lost: killed at $before, last sample $last"

echo "cut at any byte"
size=$(stat -c %s sigINT/perf.data)
for i in 1 2 3 4 5 6 7 8; do
	cut=$((2000 + (size - 2000) * i / 9 + i))
	head -c "$cut" sigINT/perf.data >cut.data
	"$R" -R cut.data >"$T/out" 2>&1 || fail "repair of $cut bytes: $(cat "$T/out")"
	opens cut.data
done

echo "no space left"
if [ "$(id -u)" = 0 ] && mkdir full && mount -t tmpfs -o size=2m tmpfs full 2>/dev/null; then
	T_MOUNTED+=("$T/full")
	# Not the whole machine: with many processes their state alone could exceed the limit.
	"$R" -q -p "$load_pid" -F 4999 -d 60 -o full/r >"$T/out" 2>"$T/err" && fail "succeeded without space"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "not one line: $(cat "$T/err")"
	grep -q 'No space left' "$T/err" || fail "$(cat "$T/err")"
	[ "$(value started)" = 1 ] && [ "$(value end)" = error ] || fail "$(cat "$T/out")"
	opens full/r/perf.data
	at_least "$(samples)" 10 || fail "$(samples) samples are kept"
else
	echo "(not tried: a tmpfs cannot be mounted)"
fi

# fails_with PATTERN ARG...: checks that the recorder fails with one line that matches.
fails_with() {
	local pattern=$1
	shift
	"$R" "$@" >"$T/out" 2>"$T/err" && fail "succeeded: $*"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "not one line: $*: $(cat "$T/err")"
	grep -qE "$pattern" "$T/err" || fail "$*: $(cat "$T/err")"
	cat "$T/err"
}
echo "messages"
fails_with 'process 4194303: no such process' -p 4194303 -o m1
fails_with "'nosuch': no such event" -p "$load_pid" -e nosuch -o m2
fails_with "'cpu-clock:x': wrong modifier" -p "$load_pid" -e cpu-clock:x -o m3
fails_with 'no such tracepoint|tracefs is not mounted|no permission' -p "$load_pid" -e sched:nosuch -o m4
fails_with 'cannot execute ./nosuch: No such file' -o m5 -- ./nosuch
touch file
fails_with 'cannot make the output directory file/x: Not a directory; choose one with -o' -p "$load_pid" -o file/x
fails_with 'output directory not/there: its parent does not exist; make that first' -p "$load_pid" -o not/there
[ ! -e not ] || fail "the parents of a mistyped directory were made"
fails_with 'no target' -o m6
mkdir pmu # a tree with a PMU: cycles are selected, and dropped if they cannot be opened
mkdir -p pmu/bus/event_source/devices/cpu pmu/devices/system/cpu
echo 4 >pmu/bus/event_source/devices/cpu/type
cp /sys/devices/system/cpu/online pmu/devices/system/cpu/
"$R" -p "$load_pid" -s "$T/pmu" -F 99 -d 0.3 -o pmu-out >"$T/out" 2>"$T/err" || fail "$(cat "$T/err")"
case $(value event) in
cycles | cpu-clock) ;;
*) fail "event $(value event)" ;;
esac
[ "$(value event)" = cycles ] || grep -q 'cpu-clock is used' "$T/err" || fail "the fallback to cpu-clock is not reported: $(cat "$T/err")"

echo "more threads than descriptors, and no right to sample whole CPUs"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	start threads "$W" threads 300 20
	wait_for 20 grep -q ready "$T/threads.log" || fail "the workload did not start"
	many=$STARTED
	(
		ulimit -Sn 128
		ulimit -Hn 400
		# mode threads replaces the missing right
		fails_with '301 threads on .* CPUs need more descriptors than the limit of 400' -p "$many" -m threads -d 1 -o m7
	) || exit 1
	stop "$many"
fi

echo "a user without rights"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 777 "$T" && mkdir -m 777 nobody
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"; }
	as_nobody "$R" -p "$load_pid" -d 0.2 -o nobody/a >"$T/out" 2>"$T/err" && fail "recorded a process of another user"
	grep -qE 'CAP_PERFMON is missing' "$T/err" || fail "$(cat "$T/err")"
	as_nobody "$R" -a -d 0.2 -o nobody/b >"$T/out" 2>"$T/err" && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 0 ] &&
		fail "recorded the machine"
	cp "$W" nobody/workload
	as_nobody "$R" -F 999 -o nobody/c -- nobody/workload deep 5 0.5 >"$T/out" 2>"$T/err" || fail "$(cat "$T/err")"
	chown "$(id -u)" nobody/c/perf.data # perf refuses files of other users
	opens nobody/c/perf.data
	at_least "$(grep -c burn_deep "$T/script")" 20 || fail "no samples of its own command"
	cat "$T/err"
fi
exit 0
