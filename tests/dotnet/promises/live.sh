# shellcheck shell=bash
# The runtime's events report compiled and freed methods, with times and modules.

# live_count FILE: the numbers of methods that were there before, loaded, freed, freed after a reported load, and loaded in an
# unknown module.
live_count() {
	awk '
		{ heard[$1]++ }
		$1 == "load" { last[$3] = $2; if (/ \[\?\] /) nameless++ }
		$1 == "gone" && $3 in last && last[$3] <= $2 { ends++ }
		END { print heard["seen"] + 0, heard["load"] + 0, heard["gone"] + 0, ends + 0, nameless + 0 }' "$1"
}

# collectible SECONDS: the listener hears code that is compiled and freed again. CoreCLR may crash over a list of methods
# while code is freed. The listener requests none, so modules from before are unknown.
promise_collectible() {
	local seen loaded gone ends nameless
	sleep "$1" | "$BUILD/helpers/jit_names" listen "$PID" heard >heard.log || fail "$(cat heard.log)"
	cat heard.log
	read -r seen loaded gone ends nameless < <(live_count heard)
	echo "$seen from before, $loaded loaded, $gone freed, $ends of them after a reported load; $nameless in unknown modules"
	[ "$loaded" -gt 20 ] && [ "$gone" -gt 10 ] && [ "$ends" -gt 10 ] && [ "$seen" = 0 ] && [ $((4 * nameless)) -lt "$loaded" ] ||
		fail "these are not the events of a collectible assembly"
	grep -qE '^load [0-9]+ 0x[0-9a-f]+ [0-9a-f]+ [^[]*\[(Collected|Plugin)[0-9]+\] ' heard || fail "no method of a collectible assembly"
}

# other SECONDS: methods from before and newly compiled ones are reported with their modules.
promise_other() {
	local seen loaded gone ends nameless
	sleep "$1" | "$BUILD/helpers/jit_names" live "$PID" live >live.log || fail "$(cat live.log)"
	cat live.log
	read -r seen loaded gone ends nameless < <(live_count live)
	echo "$seen from before, $loaded loaded, $nameless in unknown modules"
	[ "$seen" -gt 500 ] && [ "$loaded" -gt 20 ] && [ "$nameless" = 0 ] || fail "these are not the methods of that program"
}

# A killed listener leaves nothing in the target, once the target compiles a method.
live_listeners() { cat "/proc/$PID"/task/*/comm | grep -c EventPipe; }
promise_killed() {
	local before
	before=$(live_listeners)
	mkfifo until
	start killed bash -c "exec 3<>until; exec '$BUILD/helpers/jit_names' live $PID '$T/killed' <&3"
	wait_for 30 grep -q '^listening' killed.log || fail "$(cat killed.log)"
	[ "$(live_listeners)" -gt "$before" ] || fail "nothing listens"
	kill -KILL "$STARTED"
	live_alone() { [ "$(live_listeners)" -le "$before" ]; }
	wait_for 20 live_alone || fail "the runtime still sends events to a killed profcpu"
}
