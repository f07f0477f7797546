#!/usr/bin/env bash
# .NET's jitdump, which in .NET 10 stops after a few stubs: then the perf map names the code, and the report says so. A whole one
# (DOTNET_PerfMapStubGranularity=4) is used, and names nothing differently from the map.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet web-api
need_sampling

# recorded DIR [NAME=VALUE...]: the web API from its start, under load.
recorded() {
	local dir=$1 pid recorder
	shift
	start collect "$PROFCPU" collect -o "$T/$dir" -F 499 -d 120 --jit-names=none -- env DOTNET_PerfMapEnabled=1 "$@" dotnet "$ROOT/build/examples/web-api/web-api.dll"
	recorder=$STARTED
	wait_for 60 grep -q '^listening on' collect.log || fail "the web API did not start: $(cat collect.log)"
	API_PORT=$(sed -n 's/^listening on .*:\([0-9]*\) pid .*/\1/p' collect.log)
	pid=$(sed -n 's/^listening on .* pid \([0-9]*\).*/\1/p' collect.log)
	T_STARTED+=("$pid") # it outlives the recording
	T_FILES+=("/tmp/perf-$pid.map" "/tmp/jit-$pid.dump" "/tmp/perfinfo-$pid.map")
	start_load 6 /cpu /wait
	wait "$LOAD_PID" || fail "the load had no answers: $(cat load.log)"
	kill -INT "$recorder" && wait "$recorder"
	cat collect.log
	grep -q . "$dir/symbols/names" || fail "no names in the recording"
}
# managed DIR: of the frames in JIT code how many have a name, and all.
managed() {
	awk '/\((\/memfd:doublemapper.*|\/tmp\/perf-[0-9]+\.map|\/\/anon)\)$/ { all++; if ($2 != "[unknown]") named++ }
		END { print named + 0, all + 0 }' "$1/perf_script.out"
}

recorded early
read -r named all < <(managed early)
echo "JIT frames with a name: $named of $all"
[ "$all" -gt 1000 ] || fail "only $all JIT frames were sampled"
[ $((named * 1000)) -ge $((all * 999)) ] || fail "fewer than 99.9 % have a name"
grep -q ' perf-map - .*Cpu::Burn' early/symbols/names || fail "Burn has no name of the perf map"
cp collect.log early.log

recorded whole DOTNET_PerfMapStubGranularity=4
read -r named all < <(managed whole)
echo "JIT frames with a name: $named of $all"
grep -q ' jitdump - .*Cpu::Burn' whole/symbols/names || fail "Burn has no name of the jitdump"
grep -q 'stopped while the process went on' collect.log && fail "a whole jitdump is said to have stopped"
grep -q 'have two names' collect.log && fail "jitdump and perf map disagree"
# .NET 10 without a mended jitdump; others may have a whole one.
grep -q ' jitdump - .*Cpu::Burn' early/symbols/names || grep -q 'jitdump stopped while the process went on' early.log ||
	fail "the jitdump that stopped was not noticed"
