#!/usr/bin/env bash
# Waits of the web API's threads. The waiting route has nearly all waits that are not idle and no CPU time; the
# computing route has the reverse. Idle waits are marked as idle. Time on and off the CPU adds up to all time, and
# agrees with the kernel's counts.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/idle.sh
. "$TESTS/dotnet/idle.sh"
need_dotnet web-api
need python3
need_sampling
need_release

mkdir apart && cd apart || exit 1 # the service watches its directory, and the recording would change it
start_web_api
cd "$T" || exit 1
wait_ms=100 # minimal time of a response of /wait, which blocks a pool thread
counts() { # prints counts of all threads from the kernel
	local task
	for task in "/proc/$API_PID/task"/*; do
		echo "${task##*/} $(cat "$task/schedstat")"
	done
}
is_quiet() { # true if nearly nothing runs for half a second
	local since
	since=$(counts | awk '{ ns += $2 } END { printf "%.0f", ns }')
	sleep 0.5
	[ $(($(counts | awk '{ ns += $2 } END { printf "%.0f", ns }') - since)) -lt 3000000 ]
}
load() { # SECONDS: one connection each, so that there are CPUs for both
	start load "$BUILD/examples/load" -c 1 -d "$1" "$API_PORT" /cpu /wait
	wait "$STARTED"
}

load 6 || fail "the load got no responses: $(cat load.log)" # starts threads and compiles hot methods
wait_for 30 is_quiet # the runtime recompiles them after the load
start collect "$PROFCPU" collect --off-cpu --max-overhead 100 -F 499 -o rec -p "$API_PID" -d 120
recorder=$STARTED
wait_for 30 test -s rec/perf.data || fail "the recording did not begin: $(cat collect.log)"
sleep 0.5
counts >before
load 8 || fail "the load got no responses: $(cat load.log)"
sleep 0.2
counts >after
kill -INT "$recorder"
wait "$recorder" || fail "collect gave $?: $(cat collect.log)"
cat load.log
grep 'off-CPU' collect.log

echo "waits that began before the recording have their stacks"
python3 - rec <<'PY' || fail "too many waits have no stack"
import os, sys
sys.path.insert(0, os.path.join(os.environ["TESTS"], "e2e", "waits"))
import off_cpu_threads
threads = off_cpu_threads.threads_of(sys.argv[1])
with open("unknown", "w", encoding="ascii") as file: # unknown us, because switches were lost
    print(sum(t["unknown"] for t in threads) // 1000, file=file)
off, without = (sum(sum(t[f] for f in fields) for t in threads) for fields in (("blocked", "runnable"), ("no_stack",)))
print(f"{without / 1e9:.6f} s of {off / 1e9:.6f} s have none, of {len(threads)} threads")
sys.exit(not (len(threads) > 15 and without < 0.01 * off))
PY

echo "the routes"
waits() { weight_of "${2:-rec/offcpu.folded}" "${1:-}"; } # us
responses=$(awk '$1 == "/wait" { print $2 }' load.log)
# Only waits that are not idle and that the threads began themselves: other processes preempt them at any time.
grep -v 'idle\]' rec/offcpu.folded | grep ';do_syscall_64;' | grep -v 'exit_to_user_mode\|sched_yield\|waiting for a CPU' >wanted
not_idle=$(waits '' wanted)
on_wait=$(share_of rec/folded_stacks.out 'BlockOnDelay')
on_cpu=$(share_of rec/folded_stacks.out 'Cpu[.]Burn')
echo "below /wait $(waits BlockOnDelay) us of $not_idle us that are not idle, $on_wait % of the CPU; below /cpu $(waits 'Cpu[.]Burn' wanted) us, $on_cpu % of the CPU; $responses waits"
awk -v got="$(waits BlockOnDelay)" -v responses="$responses" -v ms="$wait_ms" -v unknown="$(cat unknown)" 'BEGIN { exit !(got >= 1000 * ms * responses * 0.99 - unknown && got <= 1000 * ms * (responses + 1) * 1.15) }' ||
	fail "BlockOnDelay does not have the time of $responses responses of /wait"
awk -v got="$(waits BlockOnDelay wanted)" -v all="$not_idle" 'BEGIN { exit !(got >= 0.8 * all) }' || fail "/wait has less than 80 % of the waits that are not idle: $(grep -v 'idle\]' rec/offcpu.folded)"
at_least 2 "$on_wait" || fail "/wait has samples on the CPU"
at_least "$on_cpu" 80 || fail "/cpu has less than 80 % of the samples: $(head -n 5 rec/folded_stacks.out)"
awk -v got="$(waits 'Cpu[.]Burn' wanted)" -v all="$not_idle" 'BEGIN { exit !(got < 0.02 * all) }' || fail "/cpu has waits"

echo "idle waits"
check_idle rec/offcpu.folded dotnet
"$PROFCPU" fold --idle --event-filter offcpu-time rec >shown 2>fold.err || fail "fold: $(cat fold.err)"
grep -q '\[idle\]' shown && fail "--idle leaves waits marked as idle"
grep -q 'WorkerThreadStart();.*LowLevelLifoSemaphore[.]Wait' shown || fail "no idle pool thread in: $(head -n 3 shown)"
awk -v a="$(weight_of shown)" -v b="$(waits)" 'BEGIN { d = a / 1000 - b; exit !(d < 2000 && d > -2000) }' || fail "$(weight_of shown) ns with --idle, $(waits) us without"
awk -v ns="$(sed -n 's/.*"idle_ns": *\([0-9]*\).*/\1/p' rec/report.json)" -v us="$(waits ';[[]idle] ?$')" 'BEGIN { d = ns / 1000 - us; exit !(ns > 0 && d < 200 && d > -200) }' || fail "the sum of idle waits in report.json differs"
grep -q '%) idle' collect.log || fail "the report lacks the share of idle waits"

echo "on and off the CPU"
"$PROFCPU" fold --pid --tid --idle --event-filter offcpu-time -o each rec 2>fold.err || fail "fold: $(cat fold.err)"
python3 "$TESTS/e2e/waits/off_cpu_threads.py" wall rec each || fail "wall.folded does not have all the time"
grep -q '>Wall clock: ' rec/wall.svg || fail "wall.svg has another title"
tar -tzf rec/prof.tar.gz | grep -q 'wall.folded' || fail "not in the archive"
"$PROFCPU" postprocess -q --offline -o away rec/prof.tar.gz || fail "postprocess"
for file in offcpu.folded wall.folded wall.svg; do
	cmp "rec/$file" "away/$file" || fail "$file of the archive differs"
done

echo "times agree with the kernel's counts"
python3 "$TESTS/e2e/waits/off_cpu_threads.py" schedstat rec before after || fail "times differ from the kernel's"
exit 0
