#!/usr/bin/env bash
# profcpu switches a perf map on in running .NET 8, 9 and 10 processes, and leaves nothing of it. Cases: two recorders at once,
# kill -9, the end of the target, other namespaces, a full disk. A map that the user switched on stays on.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need dotnet
need_dotnet web-api
names=$BUILD/helpers/jit_names

# hold NAME PID: has the map on until `stop $HOLDER`; what it says is in NAME.log, the copy in NAME.map.
hold() {
	rm -f "$T/$1.log"
	start "$1" "$names" hold "$2" "$T/$1.map"
	HOLDER=$STARTED
	wait_for 30 test -s "$T/$1.log" || fail "$1 says nothing"
}
# is_on PID
is_on() {
	# shellcheck disable=SC2010 # what descriptors are of
	ls -l "/proc/$1/fd" | grep -q '/perf-[0-9]*\.map'
}
# clean PID [NSPID DIRECTORY]: no file, and the process writes none.
clean() {
	local files
	files=$(find "${3:-/tmp}" -maxdepth 1 -name "perf*-${2:-$1}.*")
	[ -z "$files" ] || fail "left: $files"
	! is_on "$1" || fail "process $1 still writes a map"
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

	hold one "$pid"
	grep -q '^on ours' "$T/one.log" || fail "$name: not ours: $(cat "$T/one.log")"
	first=$HOLDER
	hold two "$pid"
	grep -q '^on ours 0.0 ms' "$T/two.log" || fail "$name: not shared: $(cat "$T/two.log")"
	stop "$first"
	grep -q '^ended' "$T/one.log" || fail "$name: $(cat "$T/one.log")"
	is_on "$pid" && [ -e "/tmp/perf-$pid.map" ] || fail "$name: the first took the second's map away"
	stop "$HOLDER"
	clean "$pid"
	[ "$(lines "$T/one.map")" -ge 100 ] && [ "$(lines "$T/two.map")" -ge 100 ] || fail "$name: no methods in the copies"

	hold killed "$pid"
	kill -KILL "$HOLDER"
	wait "$HOLDER" 2>/dev/null
	is_on "$pid" && [ -e "/tmp/perf-$pid.map.profcpu" ] || fail "$name: no mark is left after a kill"
	"$names" sweep "$pid" >"$T/sweep" # which may fail on what others left in /tmp
	# Another recorder on the machine may be at it, and has it locked until it is done.
	grep -qE '^removed ([1-9]|0 in use [1-9])' "$T/sweep" || fail "$name: $(cat "$T/sweep")"
	grep -q '^removed [1-9]' "$T/sweep" || wait_for 20 test ! -e "/tmp/perf-$pid.map.profcpu" || fail "$name: $(cat "$T/sweep"), and it stays"
	clean "$pid"

	hold orphan "$pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	stop "$HOLDER"
	grep -q '^ended' "$T/orphan.log" || fail "$name: $(cat "$T/orphan.log")"
	[ -z "$(find /tmp -maxdepth 1 -name "perf*-$pid.*")" ] || fail "$name: files of a target that ended are left"
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
"$names" map "$SERVICE" "$T/dump.map" </dev/null 2>"$T/dump.err" && fail "a map beside a jitdump"
grep -q 'writes a jitdump' "$T/dump.err" || fail "$(cat "$T/dump.err")"
grep -q "/jit-$SERVICE.dump" "/proc/$SERVICE/maps" || fail "the jitdump was ended"
stop "$SERVICE"

# The runtime's own variables say where the map and the port are.
mkdir "$T/maps" "$T/ports"
start_service elsewhere env "TMPDIR=$T/ports" "DOTNET_PerfMapJitDumpPath=$T/maps" dotnet "$dll"
hold there "$SERVICE"
[ -e "$T/maps/perf-$SERVICE.map" ] && [ -e "$T/maps/perf-$SERVICE.map.profcpu" ] || fail "not in DOTNET_PerfMapJitDumpPath"
stop "$HOLDER"
clean "$SERVICE" "$SERVICE" "$T/maps"
stop "$SERVICE"

# A stopped process costs the time limit; nothing is left once it goes on.
start_service stopped dotnet "$dll"
kill -STOP "$SERVICE"
"$names" map "$SERVICE" "$T/stopped.map" </dev/null 2>"$T/stopped.err" && fail "a stopped process has a map"
grep -q 'did not answer in time' "$T/stopped.err" || fail "$(cat "$T/stopped.err")"
kill -CONT "$SERVICE"
"$names" sweep "$SERVICE" >"$T/sweep"
clean "$SERVICE"
stop "$SERVICE"

# In another mount and PID namespace, where /tmp is a small file system: seen from outside, and full.
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
	hold outside "$service"
	[ -e "$tmp/perf-1.map" ] && [ -e "$tmp/perf-1.map.profcpu" ] || fail "no map of number 1: $(cat "$T/outside.log")"
	kill -KILL "$HOLDER"
	wait "$HOLDER" 2>/dev/null
	"$names" sweep "$service" | grep -q '^removed 1 ' || fail "what was left in another namespace is not found"
	clean "$service" 1 "$tmp"
	hold outside "$service"
	stop "$HOLDER"
	clean "$service" 1 "$tmp"
	head -c 8M /dev/zero >"$tmp/full" 2>/dev/null
	"$names" map "$service" "$T/full.map" </dev/null 2>"$T/full.err" && fail "a map on a full disk"
	grep -q 'cannot write to /tmp of process .*: No space left on device' "$T/full.err" || fail "$(cat "$T/full.err")"
	clean "$service" 1 "$tmp"
	kill -KILL "$service"
else
	echo "other namespaces are left out: needs root"
fi

"$ROOT/tests/dotnet/publish" web-api-net8 web-api-net9 >"$T/publish.log" 2>&1 ||
	skip "needs the .NET 8 and 9 runtimes: $(tail -n 1 "$T/publish.log")"
lives_and_dies net8 "$ROOT/build/publish/web-api-net8/web-api"
lives_and_dies net9 "$ROOT/build/publish/web-api-net9/web-api"
