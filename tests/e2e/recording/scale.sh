#!/usr/bin/env bash
# With 5,000 threads at a hard limit of 1,024 descriptors, and with 2,000 processes, recording starts within a second.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need perf
need_sampling
R=$BUILD/helpers/record_main
W=$BUILD/helpers/workload
value() { sed -n "s/^$1 //p" "$T/out"; }
# Time to start: that of a recording of 10 ms minus these 10 ms. Also minus the recorder's wait for a CPU (it has
# real-time priority if permitted) and the time that the hypervisor took.
stolen_ms() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { printf "%.0f\n", $9 * 1000 / hz }' /proc/stat; }
starts_within_a_second() { # DIRECTORY ARG...
	local try begin ms stolen
	for try in 1 2 3; do
		stolen=$(stolen_ms)
		begin=$(date +%s%N)
		"${FIRST[@]}" "$R" -q -F 999 -d 0.01 -o "$1-$try" "${@:2}" >"$T/out" 2>&1 || fail "record $*: $(cat "$T/out")"
		ms=$((($(date +%s%N) - begin) / 1000000 - 10))
		stolen=$(($(stolen_ms) - stolen))
		echo "$*: $ms ms, of them waiting for a CPU $(value delay_ms) ms, stolen $stolen ms; CPU $(value user_s) + $(value sys_s) s"
		[ $((ms - $(value delay_ms) - stolen)) -ge 1000 ] || return 0
	done
	fail "the start takes longer than a second, three times: $*"
}

start threads "$W" threads 5000 300
wait_for 90 grep -q ready "$T/threads.log" || skip "5,000 threads cannot be started here: $(cat "$T/threads.log")"
(
	ulimit -Sn 256
	ulimit -Hn 1024
	starts_within_a_second many-start -p "$STARTED"
	"$R" -q -p "$STARTED" -F 999 -d 3 -o many >"$T/out" 2>&1 || fail "record: $(cat "$T/out")"
	[ "$(value lost)" = 0 ] || fail "$(value lost) samples lost"
) || exit 1
perf_agrees "$T/script" script -i many/perf.data -F ip,sym
n=$(grep -c burn_thread "$T/script")
at_least "$n" 50 || fail "$n samples of burn_thread in 3 s"
comms=$(perf script -i many/perf.data --show-task-events 2>/dev/null | grep -c "PERF_RECORD_COMM.*$STARTED/")
[ "$comms" -ge 5001 ] || fail "$comms of 5001 threads have a name"
stop "$STARTED"

start processes "$W" processes 2000 300
wait_for 90 grep -q ready "$T/processes.log" || skip "2,000 processes cannot be started here: $(cat "$T/processes.log")"
starts_within_a_second machine-start -a
"$R" -q -a -F 999 -d 3 -o machine >"$T/out" 2>&1 || fail "record: $(cat "$T/out")"
perf_agrees "$T/script" script -i machine/perf.data -F ip,sym
n=$(grep -c burn_parent "$T/script")
at_least "$n" 50 || fail "$n samples of burn_parent in 3 s"
starts_within_a_second family-start -p "$STARTED"

echo "a signal during the start"
early=0
for ((try = 1; try <= 60 && early < 3; try++)); do
	rm -rf early
	"$PROFCPU" collect -q --record-only -a --jit-names=none -F 999 -d 60 -o early >"$T/out" 2>"$T/err" &
	pid=$!
	sleep "0.0$((try % 10))$((try / 10))"
	begin=$(date +%s%N)
	kill -TERM "$pid" # instead of SIGINT, which background jobs of a shell ignore
	wait "$pid"
	status=$?
	took=$((($(date +%s%N) - begin) / 1000000))
	grep -q 'before it began' "$T/err" || continue
	early=$((early + 1))
	echo "try $try: ended after $took ms"
	[ "$status" = 1 ] || fail "exit $status: $(cat "$T/err")"
	[ "$(grep -c . "$T/err")" = 1 ] || fail "not one line: $(cat "$T/err")"
	[ ! -e early ] || fail "files remain: $(ls -A early)"
	[ "$took" -lt 2000 ] || fail "the recorder took $took ms to end"
done
[ "$early" -gt 0 ] || fail "no signal arrived during the start: $(cat "$T/err")"
exit 0
