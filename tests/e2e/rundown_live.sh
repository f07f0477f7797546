#!/usr/bin/env bash
# One who listens to the runtime's events hears what is compiled and what is freed, with their times and modules; and of one that is killed over it
# nothing is left in the target once that compiles something.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet
make -s -C "$ROOT" wide-net || fail "the wide example does not build"
names=$BUILD/helpers/jit_names

start wide dotnet "$ROOT/build/examples/wide-net/wide-net.dll" 60 --only Collectible
service=$STARTED
wait_for 30 grep -q '^working' "$T/wide.log" || fail "it did not start: $(cat "$T/wide.log")"

sleep 6 | "$names" live "$service" "$T/live" >"$T/live.log" || fail "$(cat "$T/live.log")"
cat "$T/live.log"
# A module that was loaded before we listened and freed before the list was made is never told.
listed=$(awk '$1 == "seen" && $2 > last { last = $2 } END { printf "%d", last }' "$T/live")
awk -v listed="$listed" '
	{ heard[$1]++ }
	$1 == "load" { if (last[$3] > $2) bad++; last[$3] = $2; if (/ \[\?\] / && $2 > listed) nameless++ }
	$1 == "gone" { if (last[$3] > $2) bad++; if ($3 in last) ends++; last[$3] = $2 }
	END {
		printf "%d there, %d loaded, %d gone, of which %d were heard to come; %d out of order, %d without a module\n",
			heard["seen"], heard["load"], heard["gone"], ends, bad, nameless
		exit !(heard["seen"] > 500 && heard["load"] > 20 && heard["gone"] > 10 && ends > 10 && !bad && !nameless)
	}' "$T/live" || fail "not what a collectible assembly does"
grep -qE '^load [0-9]+ 0x[0-9a-f]+ [0-9a-f]+ [^[]*\[(Collected|Plugin)[0-9]+\] ' "$T/live" || fail "no method of a collectible assembly"

listeners() { cat /proc/"$service"/task/*/comm | grep -c EventPipe; }
before=$(listeners)
mkfifo "$T/until"
start killed bash -c "exec 3<>'$T/until'; exec '$names' live $service '$T/killed' <&3"
wait_for 30 grep -q '^listening' "$T/killed.log" || fail "$(cat "$T/killed.log")"
[ "$(listeners)" -gt "$before" ] || fail "nothing listens"
kill -KILL "$STARTED"
alone() { [ "$(listeners)" -le "$before" ]; }
wait_for 20 alone || fail "the runtime still tells a profcpu that was killed"
