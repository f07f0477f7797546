#!/usr/bin/env bash
# However a recording ends, perf opens what is there: signals, kill -9, a full disk, wrong targets.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
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
for signal in INT TERM; do
	echo "SIG$signal"
	"$R" -q -p "$load_pid" -F 999 -o "sig$signal" >"$T/out" 2>"$T/err" &
	pid=$!
	wait_for 20 test -s "sig$signal/perf.data" || fail "it did not start: $(cat "$T/err")"
	wait_for_cpu "$load_pid" 500
	kill "-$signal" "$pid"
	wait "$pid" || fail "SIG$signal: exit $?: $(cat "$T/err")"
	[ "$(value end)" = signal ] || fail "$(cat "$T/out")"
	opens "sig$signal/perf.data"
	at_least "$(samples)" 100 || fail "$(samples) samples in 500 ms of CPU"
	grep -q '"finished": true' "sig$signal/manifest.json" || fail "the manifest does not say that it is finished"
done

echo "a second signal ends it at once"
"$R" -q -p "$load_pid" -F 999 -o twice >"$T/out" 2>"$T/err" &
pid=$!
wait_for 20 test -s twice/perf.data || fail "it did not start: $(cat "$T/err")"
kill -STOP "$pid" # so that both signals wait for it
kill -INT "$pid"
kill -TERM "$pid"
kill -CONT "$pid"
wait "$pid"
status=$?
# Either it was quick enough to finish in between, or the second one ended it; it never goes on.
[ "$status" = 0 ] || [ "$status" = 143 ] || [ "$status" = 130 ] || fail "two signals: exit $status"
[ "$status" = 0 ] || grep -q 'what was recorded is in twice; .profcpu postprocess twice.' "$T/err" || fail "two signals: $(cat "$T/err")"
"$R" -R twice/perf.data >"$T/out" || fail "two signals: repair: $(cat "$T/out")"
opens twice/perf.data

echo "kill -9"
for try in 1 2 3; do # a machine with much to do may keep the recorder, or its target, waiting for that long
	rm -rf killed
	"$R" -q -p "$load_pid" -F 999 -o killed >"$T/out" 2>"$T/err" &
	pid=$!
	wait_for 20 test -s killed/perf.data || fail "it did not start: $(cat "$T/err")"
	wait_for_cpu "$load_pid" 1500
	before=$(awk '{ print $1 }' /proc/uptime)
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	grep -q '"finished": false' killed/manifest.json || fail "the manifest says that it is finished"
	"$R" -R killed/perf.data >"$T/out" || fail "repair: $(cat "$T/out")"
	opens killed/perf.data
	last=$(sed -n 's/^.* \([0-9.]*\): *.*cpu-clock.*/\1/p' "$T/script" | tail -n 1)
	echo "try $try: killed at $before, the last sample is of ${last:=0}"
	within "$last" "$before" 1 && break
done
within "$last" "$before" 1 || fail "more than a second is lost: killed at $before, last sample $last"

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
	# Not the whole machine: where much runs, the state of its processes alone may be more than that.
	"$R" -q -p "$load_pid" -F 4999 -d 60 -o full/r >"$T/out" 2>"$T/err" && fail "no space left, and it succeeded"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "not one line: $(cat "$T/err")"
	grep -q 'No space left' "$T/err" || fail "$(cat "$T/err")"
	[ "$(value started)" = 1 ] && [ "$(value end)" = error ] || fail "$(cat "$T/out")"
	opens full/r/perf.data
	at_least "$(samples)" 10 || fail "$(samples) samples are kept"
else
	echo "(not tried: a tmpfs cannot be mounted)"
fi

# says PATTERN ARG...: fails with one line that matches.
says() {
	local pattern=$1
	shift
	"$R" "$@" >"$T/out" 2>"$T/err" && fail "succeeded: $*"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "not one line: $*: $(cat "$T/err")"
	grep -qE "$pattern" "$T/err" || fail "$*: $(cat "$T/err")"
	cat "$T/err"
}
echo "messages"
says 'process 4194303: there is no such process' -p 4194303 -o m1
says "'nosuch': there is no such event" -p "$load_pid" -e nosuch -o m2
says "'cpu-clock:x': wrong modifier" -p "$load_pid" -e cpu-clock:x -o m3
says 'no such tracepoint|tracefs is not mounted|no permission' -p "$load_pid" -e sched:nosuch -o m4
says 'cannot execute ./nosuch: No such file' -o m5 -- ./nosuch
touch file
says 'cannot make a directory for the outputs at file/x: Not a directory; choose one with -o' -p "$load_pid" -o file/x
says 'at not/there: the directory that it is to be made in is not there; make that first' -p "$load_pid" -o not/there
[ ! -e not ] || fail "the parents of a mistyped directory were made"
says 'no process, no command' -o m6
mkdir pmu # a tree that has a PMU: the choice is made, and given up again where cycles cannot be opened
mkdir -p pmu/bus/event_source/devices/cpu pmu/devices/system/cpu
echo 4 >pmu/bus/event_source/devices/cpu/type
cp /sys/devices/system/cpu/online pmu/devices/system/cpu/
"$R" -p "$load_pid" -s "$T/pmu" -F 99 -d 0.3 -o pmu-out >"$T/out" 2>"$T/err" || fail "$(cat "$T/err")"
case $(value event) in
cycles | cpu-clock) ;;
*) fail "event $(value event)" ;;
esac
[ "$(value event)" = cycles ] || grep -q 'cpu-clock is used' "$T/err" || fail "did not say that it fell back: $(cat "$T/err")"

echo "more threads than descriptors, and no right to sample whole CPUs"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	start threads "$W" threads 300 20
	wait_for 20 grep -q ready "$T/threads.log" || fail "the workload did not start"
	many=$STARTED
	(
		ulimit -Sn 128
		ulimit -Hn 400
		# mode threads stands for the missing right
		says '301 threads on .* CPUs take more descriptors than the limit of 400' -p "$many" -m threads -d 1 -o m7
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
	chown "$(id -u)" nobody/c/perf.data # perf reads no file of somebody else
	opens nobody/c/perf.data
	at_least "$(grep -c burn_deep "$T/script")" 20 || fail "no samples of its own command"
	cat "$T/err"
fi
exit 0
