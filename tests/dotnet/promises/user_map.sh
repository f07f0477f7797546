# shellcheck shell=bash
# A service whose user switched on a perf map, or a jitdump too.

# Prints the number of JIT frames with names, and of all JIT frames, in a text of perf script. JIT frames are in the runtime's
# double mapping or in memory without a file. Writes frames without a name to FILE.unnamed, with counts.
user_map_frames() { # FILE
	awk -v out="$1.unnamed" '
		/\((\/memfd:doublemapper.*|\/tmp\/perf-[0-9]+\.map|\/\/anon|\[anon.*|\[JIT\].*)\)$/ {
			all++
			if ($2 == "[unknown]") unnamed[$0]++; else named++
		}
		END { for (u in unnamed) print unnamed[u], u >out; print named + 0, all + 0 }' "$1"
}

# cpu_share MS: the route that burns MS of CPU for each response has the same share of the samples as of the CPU time. The load
# begins and ends within the recording, so the number of responses gives its CPU time. Leaves $T/loaded for other rows.
promise_cpu_share() {
	local recorder process_ms responses samples burn
	need_sampling
	start collect "$PROFCPU" collect -o loaded -F 499 -d 120 -p "$PID"
	recorder=$STARTED
	wait_for 30 test -s loaded/perf.data || fail "the recording did not begin: $(cat collect.log)"
	process_ms=$(cpu_ms "$PID")
	start_load 6 /cpu /wait
	wait "$LOAD_PID" || fail "the load got no responses: $(cat load.log)"
	process_ms=$(($(cpu_ms "$PID") - process_ms))
	kill -INT "$recorder"
	wait "$recorder" || fail "collect gave $?: $(cat collect.log)"
	mv collect.log loaded.log
	responses=$(awk '$1 == "/cpu" { print $2 }' load.log)
	samples=$(awk '$1 == "samples" { print $2 + 0 }' loaded.log)
	# The rest of the CPU time is tiered compilation, which varies from run to run, and the requests themselves. Samples err by
	# chance. Requests that began before, or had no response at the end, add at most one for each of the 5 connections.
	burn=$(share_of loaded/folded_stacks.out 'Cpu[.]Burn')
	echo "below Burn: $burn % of $samples samples; $responses responses of $1 ms of CPU each in $process_ms ms of the process"
	awk -v burn="$burn" -v responses="$responses" -v each="$1" -v all="$process_ms" -v samples="$samples" 'BEGIN {
		least = 100 * responses * each / all; most = 100 * (responses + 10) * each / all; chance = 5 + 200 / sqrt(samples)
		printf "at least %.1f %%, at most %.1f %%, within %.1f points\n", least, most, chance
		exit !(burn >= least - chance && burn <= most + chance) }' || fail "the share of Burn differs from that of its CPU time"
	grep -qE 'Burn[^;]*;[^;]*CountPrimes[^;]*;[^;]*IsPrime' loaded/folded_stacks.out || fail "no stack Burn > CountPrimes > IsPrime"
	# Pictures have the readable form of the names.
	grep -q 'WebApi.Cpu.Burn(' loaded/flamegraph.svg || fail "the picture has no WebApi.Cpu.Burn(...)"
}

# named LEAST: more than 1,000 JIT frames of that recording, of which LEAST % have a name.
promise_named() {
	local named all
	read -r named all < <(user_map_frames loaded/perf_script.out)
	echo "$named of $all JIT frames have a name"
	[ "$all" -gt 1000 ] || fail "only $all JIT frames were sampled"
	[ ! -s loaded/perf_script.out.unnamed ] || sort -rn loaded/perf_script.out.unnamed | head -n 20
	at_least "$(awk -v n="$named" -v a="$all" 'BEGIN { print 100 * n / a }')" "$1" || fail "fewer than $1 % have a name"
}

# precompiled LEAST MOST: at least LEAST frames have names of precompiled code; at most MOST % of managed code is unknown.
promise_precompiled() {
	local frames unknown
	frames=$(grep -c '\[PreJIT\]' loaded/perf_script.out)
	echo "$frames frames of precompiled code"
	[ "$frames" -ge "$1" ] || fail "no precompiled code was sampled: $(cat loaded.log)"
	unknown=$(awk '$1 == "managed" { print $7 + 0 }' loaded.log)
	at_least "$2" "$unknown" || fail "$unknown % of managed is unknown: $(cat loaded.log)"
}

# perf_names_few MOST SECONDS: perf itself names at most MOST % of the service's JIT frames under load.
promise_perf_names_few() {
	local named all
	need perf
	need_sampling
	start_load 60 /cpu /wait
	perf_record "$T/perf.data" -q -F 499 -g -p "$PID" -- sleep "$2"
	perf script -i perf.data >perf.txt 2>perf.log
	read -r named all < <(user_map_frames perf.txt)
	echo "perf names $named of $all JIT frames"
	[ "$all" -ge 100 ] || fail "only $all JIT frames were sampled"
	[ $((named * 100)) -le $((all * $1)) ] || fail "perf names more than $1 %"
}

# user_map_recorded DIR SECONDS [NAME=VALUE...]: records the web API from its start, under load, with its own perf map only.
user_map_recorded() {
	local dir=$1 seconds=$2 pid recorder
	shift 2
	need_sampling
	start collect "$PROFCPU" collect -o "$dir" -F 499 -d 120 --jit-names=none -- env DOTNET_PerfMapEnabled=1 "$@" "${COMMAND[@]}"
	recorder=$STARTED
	wait_for 60 grep -q '^listening on' collect.log || fail "the web API did not start: $(cat collect.log)"
	# shellcheck disable=SC2034 # for start_load
	API_PORT=$(sed -n 's/^listening on .*:\([0-9]*\) pid .*/\1/p' collect.log)
	pid=$(sed -n 's/^listening on .* pid \([0-9]*\).*/\1/p' collect.log)
	started "$pid" # continues after the recording
	T_FILES+=("/tmp/perf-$pid.map" "/tmp/jit-$pid.dump" "/tmp/perfinfo-$pid.map")
	LOAD_CONNECTIONS=1 start_load "$seconds" /cpu /wait
	wait "$LOAD_PID" || fail "the load got no responses: $(cat load.log)"
	kill -INT "$recorder" && wait "$recorder"
	mv collect.log "$dir.log"
	grep -q . "$dir/symbols/names" || fail "no names in the recording: $(cat "$dir.log")"
}
user_map_managed() { # DIR: prints the number of JIT frames with names, and of all JIT frames
	awk '/\((\/memfd:doublemapper.*|\/tmp\/perf-[0-9]+\.map|\/\/anon)\)$/ { all++; if ($2 != "[unknown]") named++ }
		END { print named + 0, all + 0 }' "$1/perf_script.out"
}

# jitdump_stops LEAST: .NET 10's jitdump stops after a few stubs. Then the perf map names LEAST % of more than 1,000 JIT frames, and
# the report mentions the stopped jitdump. A repaired runtime may write a whole jitdump.
promise_jitdump_stops() {
	local named all
	# The runtime puts some stubs into no map. They run mostly in the first seconds: 1 of 2,000 frames, 1 of 900 on a busy host.
	user_map_recorded early 10
	read -r named all < <(user_map_managed early)
	echo "JIT frames with a name: $named of $all"
	[ "$all" -gt 1000 ] || fail "only $all JIT frames were sampled"
	at_least "$(awk -v n="$named" -v a="$all" 'BEGIN { print 100 * n / a }')" "$1" || fail "fewer than $1 % have a name"
	grep -q ' perf-map - .*Cpu::Burn' early/symbols/names || fail "Burn has no name of the perf map"
	grep -q ' jitdump - .*Cpu::Burn' early/symbols/names || grep -q 'jitdump is incomplete' early.log ||
		fail "the stopped jitdump is not reported: $(cat early.log)"
}
# A whole jitdump (DOTNET_PerfMapStubGranularity=4) is used, and its names equal those of the map.
promise_jitdump_whole() {
	local named all
	user_map_recorded whole 4 DOTNET_PerfMapStubGranularity=4
	read -r named all < <(user_map_managed whole)
	echo "JIT frames with a name: $named of $all"
	grep -q ' jitdump - .*Cpu::Burn' whole/symbols/names || fail "Burn has no name of the jitdump"
	grep -q 'jitdump is incomplete' whole.log && fail "a whole jitdump is reported as stopped"
	grep -q 'have two names' whole.log && fail "jitdump and perf map disagree"
	return 0
}
