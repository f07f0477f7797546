#!/usr/bin/env bash
# CPUs that come online while they are recorded are sampled from then on, or it is said that they are not. A tree in the place
# of /sys says which are online: the machine's own stay as they are.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf taskset
need_sampling
R=$BUILD/helpers/record_main
[ "$(cat /sys/devices/system/cpu/online)" = 0 ] && skip "needs two CPUs"
mkdir -p sys/devices/system/cpu
online() { echo "$1" >sys/devices/system/cpu/online; } # in place, as the kernel
start busy taskset -c 1 "$BUILD/examples/shares" 60
busy=$STARTED
now() { cut -d ' ' -f 1 /proc/uptime; }
# CPU 1 comes after a second, goes, and comes again.
record_changing() { # DIR ARG...
	online 0
	"$R" -F 199 -s "$T/sys" -d 14 -o "$@" >out 2>err &
	local pid=$!
	wait_for 20 [ -s "$1/manifest.json" ] || fail "it did not begin: $(cat err)"
	sleep 1
	times=("$(now)")
	for cpus in 0-1 0 0-1; do
		online $cpus
		times+=("$(now)")
		sleep 4
	done
	wait "$pid" || fail "exit $?: $(cat err)"
}
# Samples of an event on CPU 1 between two moments; three seconds after a change it is to be felt.
samples_of() { # PERF_DATA EVENT FROM TO
	perf script -i "$1" -F cpu,time,event 2>/dev/null | awk -v event="$2" -v from="$3" -v to="$4" '{ gsub(/[][]/, "") }
		$1 + 0 == 1 && $3 == event ":" && $2 + 0 > from && $2 + 0 < to { n++ } END { print n + 0 }'
}
follows() { # DIR EVENT
	local n=()
	n+=("$(samples_of "$1/perf.data" "$2" 0 "${times[0]}")")
	n+=("$(samples_of "$1/perf.data" "$2" "$(awk -v t="${times[1]}" 'BEGIN { printf "%.2f", t + 3 }')" "${times[2]}")")
	n+=("$(samples_of "$1/perf.data" "$2" "$(awk -v t="${times[2]}" 'BEGIN { printf "%.2f", t + 3 }')" "${times[3]}")")
	n+=("$(samples_of "$1/perf.data" "$2" "$(awk -v t="${times[3]}" 'BEGIN { printf "%.2f", t + 3 }')" 1e12)")
	echo "$1, $2 on CPU 1: ${n[*]}"
	{ [ "${n[0]}" = 0 ] && [ "${n[1]}" -gt 10 ] && [ "${n[2]}" = 0 ] && [ "${n[3]}" -gt 10 ]; } || fail "it does not follow"
	grep -q '^sampled since it came online: CPU 1 and 1 more$' err || fail "does not say so: $(cat err)"
}

echo "the whole machine"
record_changing one -a -e cpu-clock
follows one cpu-clock
echo "several events, which are told apart by ids"
record_changing two -a -e context-switches -e cpu-clock
follows two cpu-clock
perf script -i two/perf.data >/dev/null 2>perf.err
[ ! -s perf.err ] || fail "perf says: $(cat perf.err)"
echo "processes, by events for whole CPUs"
record_changing some -p "$busy" -m cpus
follows some "$(sed -n 's/^event //p' out)"

echo "processes, by events for each thread and CPU"
record_changing threads -p "$busy" -m threads
grep -q '^warning: not sampled: CPU 1, online only since' err || fail "does not say so: $(cat err)"
exit 0
