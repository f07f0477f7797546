#!/usr/bin/env bash
# profcpu switches a perf map on in running .NET 8, 9 and 10 processes, and removes it completely. Cases: two recorders at
# once, kill -9, the end of the target, other namespaces, a full disk. A map that the user switched on stays on.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need dotnet
need_dotnet web-api
names=$BUILD/helpers/jit_names

# keep_on NAME PID: switches the map on until `stop $KEEPER`; its output is in NAME.log, the copy in NAME.map.
keep_on() {
	rm -f "$T/$1.log"
	start "$1" "$names" keep "$2" "$T/$1.map"
	KEEPER=$STARTED
	wait_for 30 test -s "$T/$1.log" || fail "$1: no output"
}
# is_on PID
is_on() {
	# shellcheck disable=SC2010 # targets of descriptors
	ls -l "/proc/$1/fd" | grep -q '/perf-[0-9]*\.map'
}
# clean PID [NSPID DIRECTORY]: checks that no file remains and the process writes none.
clean() {
	local files
	files=$(find "${3:-/tmp}" -maxdepth 1 -name "perf*-${2:-$1}.*")
	[ -z "$files" ] || fail "files remain: $files"
	! is_on "$1" || fail "process $1 still writes a map"
}
# sweep PID NSPID DIRECTORY: removes the files of a killed recorder. Another recorder of the whole machine may remove them
# first, or do so now, under a lock. May fail on files of other programs.
sweep() {
	"$names" sweep "$1" >"$T/sweep"
	grep -q '^removed [1-9]' "$T/sweep" || wait_for 20 test ! -e "$3/perf-$2.map.profcpu" ||
		fail "the mark of a killed recorder of $1 remains: $(cat "$T/sweep")"
	clean "$@"
}
lines() { grep -ac '^0x[0-9a-f]* [0-9a-f]* .*::' "$1"; }

# start_service NAME COMMAND...: PID in $SERVICE.
start_service() {
	start "$@"
	SERVICE=$STARTED
	wait_for 60 grep -q '^listening on' "$T/$1.log" || fail "$1 did not start: $(cat "$T/$1.log")"
	T_FILES+=("/tmp/perf-$SERVICE.map" "/tmp/perfinfo-$SERVICE.map" "/tmp/jit-$SERVICE.dump" "/tmp/perf-$SERVICE.map.profcpu")
}

lives_and_dies() { # NAME COMMAND...
	local name=$1 first pid
	shift
	start_service "$name" "$@"
	pid=$SERVICE
	"$names" info "$pid" | grep -q "^pid [0-9]* version [0-9.]* rid linux-x64 arch x64 entry web-api " || fail "$name: no information"

	keep_on one "$pid"
	grep -q '^on ours' "$T/one.log" || fail "$name: profcpu did not switch the map on: $(cat "$T/one.log")"
	first=$KEEPER
	keep_on two "$pid"
	grep -q '^on ours 0.0 ms' "$T/two.log" || fail "$name: the two recorders do not share the map: $(cat "$T/two.log")"
	stop "$first"
	grep -q '^ended' "$T/one.log" || fail "$name: $(cat "$T/one.log")"
	is_on "$pid" && [ -e "/tmp/perf-$pid.map" ] || fail "$name: the end of the first recorder removed the second's map"
	stop "$KEEPER"
	clean "$pid"
	[ "$(lines "$T/one.map")" -ge 100 ] && [ "$(lines "$T/two.map")" -ge 100 ] || fail "$name: no methods in the copies"

	keep_on killed "$pid"
	kill -KILL "$KEEPER"
	wait "$KEEPER" 2>/dev/null
	is_on "$pid" && [ -e "/tmp/perf-$pid.map.profcpu" ] || fail "$name: no mark is left after a kill"
	sweep "$pid" "$pid" /tmp

	keep_on orphan "$pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	stop "$KEEPER"
	grep -q '^ended' "$T/orphan.log" || fail "$name: $(cat "$T/orphan.log")"
	[ -z "$(find /tmp -maxdepth 1 -name "perf*-$pid.*")" ] || fail "$name: files of an ended target remain"
}

dll=$ROOT/build/examples/web-api/web-api.dll
lives_and_dies net10 dotnet "$dll"

# A map that the user switched on stays on; a jitdump is not ended.
start_service users env DOTNET_PerfMapEnabled=3 dotnet "$dll"
"$names" map "$SERVICE" "$T/users.map" </dev/null >"$T/users.out" || fail "the user's map cannot be read"
grep -q '^on users' "$T/users.out" || fail "not the user's: $(cat "$T/users.out")"
is_on "$SERVICE" && [ -e "/tmp/perf-$SERVICE.map" ] || fail "the user's map was switched off"
stop "$SERVICE"
start_service dump env DOTNET_PerfMapEnabled=2 DOTNET_PerfMapStubGranularity=4 dotnet "$dll"
"$names" map "$SERVICE" "$T/dump.map" </dev/null 2>"$T/dump.err" && fail "a map although the process writes a jitdump"
grep -q 'writes a jitdump' "$T/dump.err" || fail "$(cat "$T/dump.err")"
grep -q "/jit-$SERVICE.dump" "/proc/$SERVICE/maps" || fail "the jitdump was ended"
stop "$SERVICE"

# Variables of the runtime set the directories of the map and of the port.
mkdir "$T/maps" "$T/ports"
start_service directories env "TMPDIR=$T/ports" "DOTNET_PerfMapJitDumpPath=$T/maps" dotnet "$dll"
keep_on there "$SERVICE"
[ -e "$T/maps/perf-$SERVICE.map" ] && [ -e "$T/maps/perf-$SERVICE.map.profcpu" ] || fail "not in DOTNET_PerfMapJitDumpPath"
stop "$KEEPER"
clean "$SERVICE" "$SERVICE" "$T/maps"
stop "$SERVICE"

# A stopped process costs the time limit; no file remains after it continues.
start_service stopped dotnet "$dll"
kill -STOP "$SERVICE"
"$names" map "$SERVICE" "$T/stopped.map" </dev/null 2>"$T/stopped.err" && fail "a stopped process has a map"
grep -q 'did not answer in time' "$T/stopped.err" || fail "$(cat "$T/stopped.err")"
kill -CONT "$SERVICE"
"$names" sweep "$SERVICE" >"$T/sweep"
clean "$SERVICE"
stop "$SERVICE"

# From outside a mount and PID namespace with a small /tmp, and with a full /tmp.
if [ "$(id -u)" = 0 ] && unshare --mount --pid --fork true 2>/dev/null; then
	# The new /tmp hides the checkout if that lies below /tmp: take the service along.
	mkdir "$T/small"
	# shellcheck disable=SC2016 # for the other shell
	start inside unshare --mount --pid --fork --mount-proc --kill-child sh -c 'cd / && mount -t tmpfs -o size=4m tmpfs "$2" &&
		mkdir "$2/service" && mount --bind "$1" "$2/service" && mount --rbind "$2" /tmp && exec dotnet /tmp/service/web-api.dll' - \
		"$(dirname "$dll")" "$T/small"
	wait_for 60 grep -q '^listening on' "$T/inside.log" || fail "did not start: $(cat "$T/inside.log")"
	service=$(pgrep -P "$STARTED" | head -n 1)
	tmp=/proc/$service/root/tmp
	keep_on outside "$service"
	[ -e "$tmp/perf-1.map" ] && [ -e "$tmp/perf-1.map.profcpu" ] || fail "no map of PID 1: $(cat "$T/outside.log")"
	kill -KILL "$KEEPER"
	wait "$KEEPER" 2>/dev/null
	sweep "$service" 1 "$tmp"
	keep_on outside "$service"
	stop "$KEEPER"
	clean "$service" 1 "$tmp"
	head -c 8M /dev/zero >"$tmp/full" 2>/dev/null
	"$names" map "$service" "$T/full.map" </dev/null 2>"$T/full.err" && fail "a map on a full disk"
	grep -q 'cannot write to /tmp of process .*: No space left on device' "$T/full.err" || fail "$(cat "$T/full.err")"
	clean "$service" 1 "$tmp"
	kill -KILL "$service"
else
	echo "not root: other namespaces are not tested"
fi

"$ROOT/tests/dotnet/publish" web-api-net8 web-api-net9 >"$T/publish.log" 2>&1 ||
	skip "needs the .NET 8 and 9 runtimes: $(tail -n 1 "$T/publish.log")"
lives_and_dies net8 "$ROOT/build/publish/web-api-net8/web-api"
lives_and_dies net9 "$ROOT/build/publish/web-api-net9/web-api"
