#!/usr/bin/env bash
# Processes whose lists of memory maps have 800 MB: they delay no command, and each command counts them.
# Runs alone.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_root
need_sampling
need setpriv
need python3
N=4 MAPS=50000

for ((i = 0; i < N; i++)); do
	start "lines.$i" setpriv --reuid=65534 --regid=65534 --clear-groups "$BUILD/helpers/map_storm" lines 300 $MAPS
	[ "$i" = 0 ] && targets=$STARTED || targets=$targets,$STARTED
done
wait_for_cpu "$STARTED" 500 # after it has made its maps

# timed SECONDS COMMAND...: runs it in at most that time.
timed() {
	local begin=$EPOCHREALTIME
	timeout -s KILL 120 "$PROFCPU" "${@:2}" >log 2>&1 || fail "${*:2}: exit $?: $(cat log)"
	python3 -c 'import sys; print("%s: %.1f s" % (sys.argv[1], float(sys.argv[2]) - float(sys.argv[3])))
sys.exit(float(sys.argv[2]) - float(sys.argv[3]) > float(sys.argv[4]))' "$2" "$EPOCHREALTIME" "$begin" "$1" || fail "took too long: $(cat log)"
}
timed 7 collect -q -p "$targets" -F 99 -d 2 -o out
grep -q "$N processes: not known whether they run .NET: the list of memory maps of process [0-9]* is longer than 32 MiB" log ||
	fail "collect does not count them: $(cat log)"
timed 5 ps --dotnet
grep -q "processes\? cannot be inspected for .NET: .*$N have too many memory maps to read in time (PID" log || fail "ps does not count them: $(cat log)"
timed 7 doctor -p "$STARTED"
grep -q "target runtime.*more maps than profcpu reads" log || fail "doctor does not tell the reason: $(cat log)"
exit 0
