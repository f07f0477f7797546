# shellcheck shell=bash
# Names of a service's JIT-compiled code from each source of --jit-names. profcpu leaves nothing behind in the service.

# service_frames DIR: prints the number of JIT frames with names, and of all JIT frames.
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
	[ -z "$files" ] || fail "files remain in the target's /tmp: $files"
}

# named LEAST SOURCE: LEAST % of the JIT frames have names, from SOURCE, and the target's /tmp is clean.
promise_named() {
	local words
	case $2 in
	runtime-memory) words="process $PID (.*, .NET 10[^)]*): names come from the runtime's memory" ;;
	rundown) words="process $PID (.*): names come from the runtime's events" ;;
	*) fail "no source $2" ;;
	esac
	grep -q "$words" "$REC.log" || fail "names do not come from $2: $(cat "$REC.log")"
	service_is_named "$REC" "$1" "$2"
	service_is_clean
}

# Without --lines a recording keeps no list of methods once it has its names.
promise_keeps_no_methods() {
	[ -z "$(ls "$REC"/symbols/*.methods 2>/dev/null)" ] || fail "the recording still has a list of methods"
}

# With --jit-names=none no JIT frame has a name.
promise_unnamed() {
	local named all
	read -r named all < <(service_frames "$REC")
	[ "$all" -ge 100 ] || fail "only $all JIT frames were sampled"
	[ "$named" = 0 ] || fail "$named of $all have a name despite --jit-names=none"
}

# In a recording of the whole machine the service has names.
promise_in_machine() {
	"$PROFCPU" fold --pid "$REC" | grep -- "-$PID;" | grep -q 'WebApi\.Cpu\.IsPrime(int32)' ||
		fail "no names in a recording of the whole machine: $(cat "$REC.log")"
}

# A killed recorder has saved the names that it knew.
promise_killed_keeps() {
	local recorder
	start killed "$PROFCPU" collect -p "$PID" -F 499 -d 60 -o killed
	recorder=$STARTED
	wait_for 30 grep -q IsPrime "killed/symbols/$PID.methods" || fail "no name was saved: $(cat killed.log)"
	sleep 2
	kill -KILL "$recorder"
}
# After the target's end its code has names, except methods compiled in the last two seconds before the kill.
promise_killed_named() { # LEAST
	program_ends
	"$PROFCPU" postprocess killed >killed.log 2>&1 || fail "postprocess: $(cat killed.log)"
	service_is_named killed "$1" runtime-memory
}
