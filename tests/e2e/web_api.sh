#!/usr/bin/env bash
# The web API under load with the runtime's perf map and W^X as it is by default: at least 99.9 % of the JIT frames have
# their name, where perf finds next to none; and the route that burns CPU has the share of the samples that it has of the CPU.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_dotnet web-api
need_sampling
need_release

start_web_api DOTNET_PerfMapEnabled=1
route_ms=100 # of CPU, by the thread's own clock, for each answer of /cpu

start_load 4 /cpu /wait # the hot methods reach their last tier, or come near it
wait "$LOAD_PID"
# This load begins in the recording and ends in it: what it burnt is known by its answers.
start collect "$PROFCPU" collect -o "$T/rec" -p "$API_PID" -F 499 -d 120
recorder=$STARTED
wait_for 30 test -s "$T/rec/perf.data" || fail "the recording did not begin: $(cat "$T/collect.log")"
process_ms=$(cpu_ms "$API_PID")
start_load 10 /cpu /wait
wait "$LOAD_PID" || fail "the load had no answers: $(cat "$T/load.log")"
process_ms=$(($(cpu_ms "$API_PID") - process_ms))
kill -INT "$recorder"
wait "$recorder" || fail "collect gave $?: $(cat "$T/collect.log")"
cat "$T/load.log"
answers=$(awk '$1 == "/cpu" { print $2 }' "$T/load.log")
samples=$(awk '$1 == "samples" { print $2 + 0 }' "$T/collect.log")

start_load 60 /cpu /wait
perf_record "$T/perf.data" -q -F 499 -g -p "$API_PID" -- sleep 5
perf script -i "$T/perf.data" >"$T/perf.txt" 2>"$T/perf.log"
stop "$LOAD_PID"

# Frames in JIT code: those in the runtime's double mapping or in memory of no file.
jit_frames() { # FILE: named, all, and the unnamed ones with their counts into FILE.unnamed
	awk -v out="$1.unnamed" '
		/\((\/memfd:doublemapper.*|\/tmp\/perf-[0-9]+\.map|\/\/anon|\[anon.*|\[JIT\].*)\)$/ {
			all++
			if ($2 == "[unknown]") unnamed[$0]++; else named++
		}
		END { for (u in unnamed) print unnamed[u], u >out; print named + 0, all + 0 }' "$1"
}
read -r named all < <(jit_frames "$T/rec/perf_script.out")
read -r perf_named perf_all < <(jit_frames "$T/perf.txt")
echo "JIT frames with a name: profcpu $named of $all, perf $perf_named of $perf_all"
[ "$all" -gt 1000 ] || fail "only $all JIT frames were sampled"
[ ! -s "$T/rec/perf_script.out.unnamed" ] || sort -rn "$T/rec/perf_script.out.unnamed" | head -n 20
at_least "$(awk -v n="$named" -v a="$all" 'BEGIN { print 100 * n / a }')" 99.9 || fail "fewer than 99.9 % have a name"

# The rest of the CPU time is tiered compilation, more or less from run to run, and the requests themselves. Samples err by chance;
# requests that had begun before, or were not answered at the end, add one at most for each of the 5 connections.
burn=$(share_of "$T/rec/folded_stacks.out" 'Cpu::Burn')
echo "below Burn: $burn % of $samples samples; $answers answers of $route_ms ms of CPU each in $process_ms ms of the process"
awk -v burn="$burn" -v answers="$answers" -v each="$route_ms" -v all="$process_ms" -v samples="$samples" 'BEGIN {
	least = 100 * answers * each / all; most = 100 * (answers + 10) * each / all; chance = 5 + 200 / sqrt(samples)
	printf "at least %.1f %%, at most %.1f %%, within %.1f points\n", least, most, chance
	exit !(burn >= least - chance && burn <= most + chance) }' || fail "the share of Burn is not that of its CPU time"
grep -qE 'Burn[^;]*;[^;]*CountPrimes[^;]*;[^;]*IsPrime' "$T/rec/folded_stacks.out" || fail "no stack Burn > CountPrimes > IsPrime"
# The framework is precompiled: no perf map names it, its images do.
precompiled=$(grep -c '\[PreJIT\]' "$T/rec/perf_script.out")
echo "$precompiled frames of precompiled code"
[ "$precompiled" -ge 100 ] || fail "no precompiled code was sampled: $(cat "$T/collect.log")"
unknown=$(awk '$1 == "managed" { print $7 + 0 }' "$T/collect.log")
at_least 0.1 "$unknown" || fail "$unknown % of managed is unknown: $(cat "$T/collect.log")"
# Pictures have the readable form of the names.
grep -q 'WebApi.Cpu.Burn(' "$T/rec/flamegraph.svg" || fail "the picture has no WebApi.Cpu.Burn(...)"
