#!/usr/bin/env bash
# CPUs that come online during a recording are sampled from then on, or a line reports that they are not. A fake tree of
# /sys lists the online CPUs; those of the machine do not change.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf taskset
need_sampling
R=$BUILD/helpers/record_main
[ "$(cat /sys/devices/system/cpu/online)" = 0 ] && skip "needs two CPUs"
mkdir -p sys/devices/system/cpu
online() { echo "$1" >sys/devices/system/cpu/online; } # in place, like the kernel
# Works for a part of the time, without children.
start busy taskset -c 1 bash -c 'exec 3<> <(:); while :; do for ((i = 0; i < 3000; i++)); do :; done; read -r -t 0.02 -u 3; done'
busy=$STARTED
now() { cut -d ' ' -f 1 /proc/uptime; }
# Records in the background; its output is in DIR.out and DIR.err.
recordings=()
record() { # DIR ARG...
	"$R" -F 199 -s "$T/sys" -o "$@" >"$1.out" 2>"$1.err" &
	recordings+=($!)
}
# Samples of an event on CPU 1 between two moments; a change must take effect within three seconds.
samples_of() { # DIR EVENT FROM TO
	[ -e "$1.script" ] || perf script -i "$1/perf.data" -F cpu,time,event >"$1.script" 2>/dev/null
	awk -v event="$2" -v from="$3" -v to="$4" '{ gsub(/[][]/, "") }
		$1 + 0 == 1 && $3 == event ":" && $2 + 0 > from && $2 + 0 < to { n++ } END { print n + 0 }' "$1.script"
}
follows() { # DIR EVENT
	local n=()
	n+=("$(samples_of "$1" "$2" 0 "${times[0]}")")
	n+=("$(samples_of "$1" "$2" "$(awk -v t="${times[1]}" 'BEGIN { printf "%.2f", t + 3 }')" "${times[2]}")")
	n+=("$(samples_of "$1" "$2" "$(awk -v t="${times[2]}" 'BEGIN { printf "%.2f", t + 3 }')" "${times[3]}")")
	n+=("$(samples_of "$1" "$2" "$(awk -v t="${times[3]}" 'BEGIN { printf "%.2f", t + 3 }')" 1e12)")
	echo "$1, $2 on CPU 1: ${n[*]}"
	{ [ "${n[0]}" = 0 ] && [ "${n[1]}" -gt 2 ] && [ "${n[2]}" = 0 ] && [ "${n[3]}" -gt 2 ]; } || fail "CPU 1 is not sampled exactly while it is online"
	grep -q '^sampled since it came online: CPU 1$' "$1.err" || fail "the new CPU is not reported: $(cat "$1.err")"
}

online 0
record one -u -a -e cpu-clock                   # the whole machine, as the product does
record two -a -e context-switches -e cpu-clock # several events, distinguished by ids
record some -p "$busy" -m cpus                  # processes, by events for whole CPUs
record threads -p "$busy" -m threads            # by events for each thread and CPU
for d in one two some threads; do
	wait_for 20 [ -s $d/manifest.json ] || fail "$d did not begin: $(cat $d.err)"
done
# CPU 1 comes online after a second, goes offline, and comes back.
sleep 1
times=("$(now)")
for cpus in 0-1 0 0-1; do
	online $cpus
	times+=("$(now)")
	sleep 4
done
kill -INT "${recordings[@]}"
for pid in "${recordings[@]}"; do
	wait "$pid" || fail "exit $?: $(cat ./*.err)"
done
follows one cpu-clock
follows two cpu-clock
follows some "$(sed -n 's/^event //p' some.out)"
perf script -i two/perf.data >/dev/null 2>perf.err
[ ! -s perf.err ] || fail "perf printed: $(cat perf.err)"
grep -q '^warning: not sampled: CPU 1, which came online later' threads.err || fail "the missing CPU is not reported: $(cat threads.err)"

echo "with too few descriptors a new CPU is sampled fully or not at all"
online 0
few=()
# Use timer events: for a software event that several programs sample, Linux gives one id to all. Record one process,
# because names of other .NET processes would take descriptors too.
for n in {14..22}; do
	prlimit --nofile="$n:$n" "$R" -F 199 -s "$T/sys" -d 8 -o "few$n" -p "$busy" -m cpus -e task-clock -e cpu-clock >"few$n.out" 2>"few$n.err" &
	few+=($!)
done
sleep 2
online 0-1
wait "${few[@]}"
taken=0 missed=0
for n in {14..22}; do
	grep -q '^end duration$' "few$n.out" || continue
	perf script -i "few$n/perf.data" >/dev/null 2>perf.err
	[ ! -s perf.err ] || fail "$n descriptors: perf printed: $(cat perf.err)"
	taken=$((taken + $(grep -c '^sampled since it came online: CPU 1$' "few$n.err")))
	missed=$((missed + $(grep -c '^warning: not sampled: CPU 1' "few$n.err")))
done
echo "$taken recordings sample it, $missed do not"
{ [ "$taken" -gt 0 ] && [ "$missed" -gt 0 ]; } || fail "these numbers of descriptors are not around the limit"
exit 0
