# shellcheck shell=bash
# Names of a service's JIT-compiled code, in each of the ways of --jit-names; nothing of profcpu's stays with the service.

# service_frames DIR: frames in the runtime's JIT code: named and all.
service_frames() {
	awk '/\(\/memfd:doublemapper/ { all++; named += $2 != "[unknown]" } END { print named + 0, all + 0 }' "$1/perf_script.out"
}
# service_is_named DIR LEAST SOURCE: at least 300 JIT frames, of which LEAST % have names, some from this source.
service_is_named() {
	local named all
	read -r named all < <(service_frames "$1")
	echo "$named of $all JIT frames have a name"
	[ "$all" -ge 300 ] || fail "only $all JIT frames were sampled: $(cat "$1.log")"
	at_least "$(awk -v n="$named" -v a="$all" 'BEGIN { print 100 * n / a }')" "$2" || {
		grep -E '\[unknown\] \(/memfd:doublemapper' "$1/perf_script.out" | sort | uniq -c | sort -rn | head
		fail "fewer than $2 %: $(cat "$1.log")"
	}
	grep -q 'WebApi.Cpu.IsPrime(int32)' "$1/flamegraph.svg" || fail "the picture has no WebApi.Cpu.IsPrime(int32)"
	grep -qE "^symbol [0-9a-f]+ [0-9a-f]+ $3 " "$1/symbols/names" ||
		fail "no name is from $3: $(grep -oE '^symbol [0-9a-f]+ [0-9a-f]+ [a-z0-9-]+' "$1/symbols/names" | awk '{ print $4 }' | sort | uniq -c)"
}
service_is_clean() {
	local files
	files=$(ls -d "/tmp/perf-$PID".* "/tmp/perfinfo-$PID".* 2>/dev/null)
	[ -z "$files" ] || fail "left in the target's /tmp: $files"
}

# named LEAST SOURCE: names come from there, and nothing stays in the target's /tmp.
promise_named() {
	local words
	case $2 in
	runtime-memory) words="process $PID (.*, .NET 10[^)]*): names come from the runtime's memory" ;;
	perf-map) words="process $PID (.*): names come from its perf map" ;;
	rundown) words="process $PID (.*): names come from the runtime's events" ;;
	*) fail "no source $2" ;;
	esac
	grep -q "$words" "$REC.log" || fail "it says: $(cat "$REC.log")"
	service_is_named "$REC" "$1" "$2"
	service_is_clean
}

# Without --lines no list of methods stays in the recording once names are made of it.
promise_keeps_no_methods() {
	[ -z "$(ls "$REC"/symbols/*.methods 2>/dev/null)" ] || fail "what names have been made of stays in the recording"
}

# With --jit-names=none no JIT frame has a name.
promise_unnamed() {
	local named all
	read -r named all < <(service_frames "$REC")
	[ "$all" -ge 100 ] || fail "only $all JIT frames were sampled"
	[ "$named" = 0 ] || fail "$named of $all have a name though none was asked for"
}

# In a recording of the whole machine the service has names.
promise_in_machine() {
	"$PROFCPU" fold --pid --names full "$REC" | grep -- "-$PID;" | grep -q 'WebApi\.Cpu\.IsPrime(int32)' ||
		fail "no names in a recording of the whole machine: $(cat "$REC.log")"
}

# A recorder that is killed has kept the names that it knew until then.
promise_killed_keeps() {
	local recorder
	start killed "$PROFCPU" collect -p "$PID" -F 499 -d 60 -o killed
	recorder=$STARTED
	wait_for 30 grep -q IsPrime "killed/symbols/$PID.methods" || fail "nothing was kept: $(cat killed.log)"
	sleep 2
	kill -KILL "$recorder"
}
# They name it once the target is gone too, except what was compiled since profcpu last read, at most two seconds before.
promise_killed_named() { # LEAST
	program_ends
	"$PROFCPU" postprocess killed >killed.log 2>&1 || fail "postprocess: $(cat killed.log)"
	service_is_named killed "$1" runtime-memory
}

# A perf map that a killed profcpu left goes with the next recording.
promise_next_cleans() {
	local recorder map=/tmp/perf-$PID.map
	start left "$PROFCPU" collect -p "$PID" -F 99 -d 60 --jit-names perfmap -o left
	recorder=$STARTED
	wait_for 30 test -s "$map" || fail "no perf map: $(cat left.log)"
	kill -KILL "$recorder"
	[ -e "$map" ] || fail "the map went with its recorder"
	record next -p "$PID" -F 99 -d 1
	grep -q '1 perf map of a killed profcpu: switched off and removed' collect.log || fail "$(cat collect.log)"
	service_is_clean
}
