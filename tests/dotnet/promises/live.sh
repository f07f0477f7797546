# shellcheck shell=bash
# The runtime's events report compiled and freed methods, with times and modules.

# live_count FILE: prints the numbers of methods from before, loaded, freed, freed after a reported load, and loaded in an unknown
# module.
live_count() {
	awk '
		{ events[$1]++ }
		$1 == "load" { last[$3] = $2; if (/ \[\?\] /) nameless++ }
		$1 == "gone" && $3 in last && last[$3] <= $2 { ends++ }
		END { print events["seen"] + 0, events["load"] + 0, events["gone"] + 0, ends + 0, nameless + 0 }' "$1"
}

# collectible SECONDS: the listener receives events of code that is compiled and freed again. CoreCLR may crash if methods are
# listed while code is freed. So the listener requests no list, and modules from before are unknown.
promise_collectible() {
	local seen loaded gone ends nameless seconds
	# On a slow machine, few assemblies are loaded and freed in that time, and most methods are of modules from before.
	for seconds in "$1" $((4 * $1)); do
		sleep "$seconds" | "$BUILD/helpers/jit_names" listen "$PID" events >events.log || fail "$(cat events.log)"
		cat events.log
		read -r seen loaded gone ends nameless < <(live_count events)
		[ "$loaded" -gt 20 ] && [ "$gone" -gt 10 ] && [ "$ends" -gt 10 ] && [ $((4 * nameless)) -lt "$loaded" ] && break
	done
	echo "$seen from before, $loaded loaded, $gone freed, $ends of them after a reported load; $nameless in unknown modules"
	[ "$loaded" -gt 20 ] && [ "$gone" -gt 10 ] && [ "$ends" -gt 10 ] && [ "$seen" = 0 ] && [ $((4 * nameless)) -lt "$loaded" ] ||
		fail "the events do not fit a collectible assembly"
	grep -qE '^load [0-9]+ 0x[0-9a-f]+ [0-9a-f]+ [^[]*\[(Collected|Plugin)[0-9]+\] ' events || fail "no method of a collectible assembly"
}

# has_modules SECONDS: methods from before and newly compiled ones are reported with their modules.
promise_has_modules() {
	local seen loaded gone ends nameless
	sleep "$1" | "$BUILD/helpers/jit_names" live "$PID" live >live.log || fail "$(cat live.log)"
	cat live.log
	read -r seen loaded gone ends nameless < <(live_count live)
	echo "$seen from before, $loaded loaded, $nameless in unknown modules"
	[ "$seen" -gt 500 ] && [ "$loaded" -gt 20 ] && [ "$nameless" = 0 ] || fail "the events do not fit the program"
}

# After a listener is killed, its thread in the target ends when the target compiles a method.
live_listeners() { cat "/proc/$PID"/task/*/comm | grep -c EventPipe; }
promise_killed_ends() {
	local before
	before=$(live_listeners)
	mkfifo until
	start killed bash -c "exec 3<>until; exec '$BUILD/helpers/jit_names' live $PID '$T/killed' <&3"
	wait_for 30 grep -q '^listening' killed.log || fail "$(cat killed.log)"
	[ "$(live_listeners)" -gt "$before" ] || fail "the target has no thread for the listener"
	kill -KILL "$STARTED"
	live_alone() { [ "$(live_listeners)" -le "$before" ]; }
	wait_for 20 live_alone || fail "the runtime still sends events to a killed profcpu"
}

# live_auto: records $PID with --jit-names=auto, without permission to read its memory.
live_auto() {
	need_sampling
	# Number 310 is process_vm_readv.
	"$BUILD/helpers/seccomp_exec" 310 1 "$PROFCPU" collect --no-download -o auto -p "$PID" -F 99 -d 2 >auto.log 2>&1 ||
		fail "$(cat auto.log)"
	kill -0 "$PID" || fail "the recording ended the program: $(tail -n 5 wide.log)"
}
# auto_lists_methods: a program without collectible assemblies lists its methods.
promise_auto_lists_methods() {
	live_auto
	grep -q "process $PID (.*): names come from the runtime's events" auto.log || fail "$(cat auto.log)"
}
# auto_lists_none REASON...: a program that may unload assemblies lists none. Recorder and report print the option for it.
promise_auto_lists_none() {
	live_auto
	grep -q "process $PID (.*): no names .* rundown: $*.*--jit-names=rundown" auto.log || fail "$(cat auto.log)"
	"$PROFCPU" postprocess --no-download auto >auto.report 2>&1 || fail "$(cat auto.report)"
	grep -q -e '--jit-names=rundown' auto.report || fail "the report lacks the option: $(cat auto.report)"
}
