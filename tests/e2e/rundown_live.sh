#!/usr/bin/env bash
# One who listens to the runtime's events hears what is compiled and what is freed, with their times and modules; and of one that is killed over it
# nothing is left in the target once that compiles something.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet wide-net
names=$BUILD/helpers/jit_names

# Of a list CoreCLR may crash where code is freed: what frees is listened to without one.
start_phases() { # ARGUMENT...: of the wide example; its PID is in $service
	rm -f "$T/wide.log"
	start wide dotnet "$ROOT/build/examples/wide-net/wide-net.dll" 60 "$@"
	service=$STARTED
	wait_for 30 grep -q '^working' "$T/wide.log" || fail "it did not start: $(cat "$T/wide.log")"
}
# heard FILE: how many were seen, loaded, gone, gone after a load that was heard; and loaded in a module that nothing was heard of.
heard() {
	awk '
		{ heard[$1]++ }
		$1 == "load" { last[$3] = $2; if (/ \[\?\] /) nameless++ }
		$1 == "gone" && $3 in last && last[$3] <= $2 { ends++ }
		END { print heard["seen"] + 0, heard["load"] + 0, heard["gone"] + 0, ends + 0, nameless + 0 }' "$1"
}

start_phases --only Collectible
sleep 6 | "$names" listen "$service" "$T/heard" >"$T/heard.log" || fail "$(cat "$T/heard.log")"
cat "$T/heard.log"
read -r seen loaded gone ends nameless < <(heard "$T/heard")
echo "collectible code: $seen there, $loaded loaded, $gone gone, $ends of them heard to come; $nameless of unknown modules"
# A module from before we listened is told by a list only.
[ "$loaded" -gt 20 ] && [ "$gone" -gt 10 ] && [ "$ends" -gt 10 ] && [ "$seen" = 0 ] && [ $((4 * nameless)) -lt "$loaded" ] ||
	fail "not what a collectible assembly does"
grep -qE '^load [0-9]+ 0x[0-9a-f]+ [0-9a-f]+ [^[]*\[(Collected|Plugin)[0-9]+\] ' "$T/heard" || fail "no method of a collectible assembly"
stop "$service"

start_phases --except Collect
sleep 3 | "$names" live "$service" "$T/live" >"$T/live.log" || fail "$(cat "$T/live.log")"
cat "$T/live.log"
read -r seen loaded gone ends nameless < <(heard "$T/live")
echo "other code: $seen there, $loaded loaded, $nameless of unknown modules"
[ "$seen" -gt 500 ] && [ "$loaded" -gt 20 ] && [ "$nameless" = 0 ] || fail "not what is there and what is compiled"

listeners() { cat /proc/"$service"/task/*/comm | grep -c EventPipe; }
before=$(listeners)
mkfifo "$T/until"
start killed bash -c "exec 3<>'$T/until'; exec '$names' live $service '$T/killed' <&3"
wait_for 30 grep -q '^listening' "$T/killed.log" || fail "$(cat "$T/killed.log")"
[ "$(listeners)" -gt "$before" ] || fail "nothing listens"
kill -KILL "$STARTED"
alone() { [ "$(listeners)" -le "$before" ]; }
wait_for 20 alone || fail "the runtime still tells a profcpu that was killed"
