#!/usr/bin/env bash
# A process is in execve, and the FUSE file system that must close its file does not answer. The kernel then answers no
# question about it. Everything else is recorded, and each command tells what it could not read.
# Runs alone: ps and perf wait for such a process too.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need python3
[ -w /dev/fuse ] || skip "needs /dev/fuse"
mkdir files
# At the exit, the leak sanitizer stops all threads, and the one that still asks cannot be stopped.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

start server "$BUILD/helpers/fuse_mount" "$T/files" "$BUILD/examples/shares"
SERVER=$STARTED
T_MOUNTED+=("$T/files")
wait_for 10 grep -q mounted server.log || fail "no FUSE file system: $(cat server.log)"
start busy "$BUILD/examples/shares" 120
wait_for_cpu "$STARTED" 300
# The helper continues the server even if this test is killed.
(sleep 100 && kill -CONT "$SERVER") 2>/dev/null &
WATCH=$!
start silent python3 -c 'import os, signal, sys
os.open(sys.argv[1], os.O_RDONLY | os.O_CLOEXEC)
os.kill(int(sys.argv[2]), signal.SIGSTOP)
os.execv("/bin/sleep", ["sleep", "1000"])' "$T/files/program" "$SERVER"
SILENT=$STARTED
silent() { ! timeout -s KILL 1 cat "/proc/$SILENT/stat" >/dev/null 2>&1; }
give_up() {
	kill -CONT "$SERVER"
	fail "$@"
}
if ! wait_for 10 silent; then
	kill -CONT "$SERVER"
	skip "this kernel answers for a process in execve"
fi

# asks EXPECTED COMMAND...: it ends in time with that exit status; its output is in out.
asks() {
	local expected=$1 status=0
	shift
	timeout -s KILL 40 "$PROFCPU" "$@" >out 2>&1 || status=$?
	[ "$status" = "$expected" ] || give_up "$*: exit $status: $(cat out)"
}
asks 0 ps
grep -q "does not answer.*(PID $SILENT)" out || give_up "ps does not name it: $(tail -n 1 out)"
asks 1 doctor -p "$SILENT"
grep -q 'target answers  *the process waits in execve' out || give_up "doctor does not tell: $(cat out)"
grep -q 'Timer expired\|target files' out && give_up "doctor advises what does not help: $(cat out)"
asks 1 collect -p "$SILENT" -d 1 -o one
grep -q "process $SILENT: it waits in execve .*; end it" out || give_up "collect -p: $(cat out)"
asks 1 stacks -p "$SILENT"
grep -q "process $SILENT: it waits in execve .*; end it" out || give_up "stacks: $(cat out)"
for option in -q --off-cpu; do
	asks 0 collect -a "$option" -F 499 -d 2 -o "all$option"
	grep -q 'alpha_leaf' "all$option/folded_stacks.out" || give_up "collect -a $option lacks other processes"
	[ "$(report_number "all$option" silent_processes)" = 1 ] || give_up "not counted: $(cat out)"
done
kill -CONT "$SERVER"
kill "$WATCH"
stop "$SILENT"
asks 0 ps
grep -q 'does not answer' out && fail "ps: $(cat out)"
exit 0
