#!/usr/bin/env bash
# The web API under load with the runtime's perf map and W^X as it is by default: at least 99.9 % of the JIT frames have
# their name, where perf finds next to none.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_dotnet
need_sampling
need_release

start_web_api DOTNET_PerfMapEnabled=1
start_load 60 /cpu /wait
sleep 4
record "$T/rec" -p "$API_PID" -F 499 -d 8
perf record -q -F 499 -g -p "$API_PID" -o "$T/perf.data" -- sleep 5 >"$T/perf.log" 2>&1
perf script -i "$T/perf.data" >"$T/perf.txt" 2>>"$T/perf.log"
stop "$LOAD_PID"
cat "$T/load.log"

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

# What the routes do is what is seen: most of it is below Burn, the rest is the runtime (tiered compilation above all, and spinning for
# work: more where other programs take the CPUs).
burn=$(share_of "$T/rec/folded_stacks.out" 'Cpu::Burn|Cpu.Burn')
echo "below Burn: $burn %"
at_least "$burn" 40 || fail "only $burn % below Burn"
grep -qE 'Burn[^;]*;[^;]*CountPrimes[^;]*;[^;]*IsPrime|Burn[^;]*;[^;]*(CountPrimes|IsPrime)' "$T/rec/folded_stacks.out" ||
	fail "no stack Burn > CountPrimes > IsPrime"
# Pictures have the readable form of the names.
grep -q 'WebApi.Cpu.Burn(' "$T/rec/flamegraph.svg" || fail "the picture has no WebApi.Cpu.Burn(...)"
