#!/usr/bin/env bash
# A .NET service that was started without any variable has names for its JIT-compiled code, in each of the ways of --jit-names,
# and nothing of ours stays with it; what was learned by the time of a kill -9 names the recording.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet web-api
need_sampling

start_web_api -u DOTNET_PerfMapEnabled
start_load 120 /cpu /wait
map=/tmp/perf-$API_PID.map

# jit_frames DIR: frames in the runtime's JIT code: named and all
jit_frames() {
	awk '/\(\/memfd:doublemapper/ { all++; named += $2 != "[unknown]" } END { print named + 0, all + 0 }' "$1/perf_script.out"
}
# has_names DIR LEAST SOURCE: JIT frames have names, LEAST % of them at least, and some from this source
has_names() {
	local dir=$1 least=$2 source=$3 named all
	read -r named all < <(jit_frames "$dir")
	echo "$dir: $named of $all JIT frames have a name"
	[ "$all" -ge 300 ] || fail "only $all JIT frames were sampled: $(cat collect.log)"
	at_least "$(awk -v n="$named" -v a="$all" 'BEGIN { print 100 * n / a }')" "$least" || {
		grep -E '\[unknown\] \(/memfd:doublemapper' "$dir/perf_script.out" | sort | uniq -c | sort -rn | head
		fail "fewer than $least %: $(cat collect.log)"
	}
	grep -q 'WebApi.Cpu.IsPrime(int32)' "$dir/flamegraph.svg" || fail "the picture has no WebApi.Cpu.IsPrime(int32)"
	grep -qE "^symbol [0-9a-f]+ [0-9a-f]+ $source " "$dir/symbols/names" ||
		fail "no name is from $source: $(grep -oE '^symbol [0-9a-f]+ [0-9a-f]+ [a-z0-9-]+' "$dir/symbols/names" | awk '{ print $4 }' | sort | uniq -c)"
}
nothing_stays() {
	[ -z "$(ls -d "/tmp/perf-$API_PID".* "/tmp/perfinfo-$API_PID".* 2>/dev/null)" ] ||
		fail "left in the target's /tmp: $(ls -d "/tmp/perf-$API_PID".* "/tmp/perfinfo-$API_PID".*)"
}

record auto -p "$API_PID" -F 499 -d 3
grep -q "names of process $API_PID (.*, .NET 10[^)]*) come from the runtime's memory" collect.log || fail "$(cat collect.log)"
has_names auto 99.9 runtime-memory
[ -z "$(ls auto/symbols/*.methods 2>/dev/null)" ] || fail "what names have been made of stays in the recording"
nothing_stays

# Neither the map nor events tell of stubs that were made before they were asked for.
record perfmap -p "$API_PID" -F 499 -d 3 --jit-names perfmap
grep -q 'come from its perf map' collect.log || fail "$(cat collect.log)"
has_names perfmap 99.5 perf-map
nothing_stays

record rundown -p "$API_PID" -F 499 -d 3 --jit-names=rundown
grep -q "come from the runtime's events" collect.log || fail "$(cat collect.log)"
has_names rundown 99.5 rundown
nothing_stays

record none -p "$API_PID" -F 499 -d 1 --jit-names=none
read -r named all < <(jit_frames none)
[ "$all" -ge 100 ] || fail "only $all JIT frames were sampled"
[ "$named" = 0 ] || fail "$named of $all have a name though none was asked for"

# The whole machine: the service is found in it.
record all -a -F 499 -d 2
"$PROFCPU" fold --pid --names full all | grep -- "-$API_PID;" | grep -q 'WebApi\.Cpu\.IsPrime(int32)' ||
	fail "no names in a recording of the whole machine: $(cat collect.log)"

# Killed: what was learned by then is there, also when the target is gone.
start killed "$PROFCPU" collect -p "$API_PID" -F 499 -d 60 -o killed
recorder=$STARTED
wait_for 30 grep -q IsPrime "killed/symbols/$API_PID.methods" || fail "nothing was kept: $(cat killed.log)"
sleep 2
kill -KILL "$recorder"

# A perf map that a killed profcpu left goes with the next recording.
start left "$PROFCPU" collect -p "$API_PID" -F 99 -d 60 --jit-names perfmap -o left
recorder=$STARTED
wait_for 30 test -s "$map" || fail "no perf map: $(cat left.log)"
kill -KILL "$recorder"
[ -e "$map" ] || fail "the map went with its recorder"
record next -p "$API_PID" -F 99 -d 1
grep -q '1 perf map that a killed profcpu had left' collect.log || fail "$(cat collect.log)"
nothing_stays

stop "$LOAD_PID"
stop "$API_PID"
"$PROFCPU" postprocess killed >collect.log 2>&1 || fail "postprocess: $(cat collect.log)"
# But for what was compiled since the last look, two seconds ago at most.
has_names killed 90 runtime-memory
