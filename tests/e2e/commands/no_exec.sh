#!/usr/bin/env bash
# profcpu executes no other program while it works.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need strace
need_sampling
# LeakSanitizer cannot examine a traced process.
export ASAN_OPTIONS=detect_leaks=0

# only_itself ALLOWED COMMAND...: checks under strace that it makes at most ALLOWED execve calls.
only_itself() {
	local allowed=$1 status=0 n
	shift
	strace -f -qq -e trace=execve,execveat -o "$T/trace" "$@" >"$T/out" 2>"$T/err" || status=$?
	[ "$status" = 0 ] || fail "$* gave $status: $(cat "$T/err")"
	n=$(grep -cE 'execve(at)?\(' "$T/trace")
	[ "$n" = "$allowed" ] || fail "$* executed other programs: $(cat "$T/trace")"
}

start_shares 60
only_itself 1 "$PROFCPU" collect -p "$SHARES_PID" -d 2 -o "$T/rec"
only_itself 1 "$PROFCPU" collect -a -d 1 -o "$T/rec-a"
only_itself 1 "$PROFCPU" postprocess "$T/rec"
only_itself 1 "$PROFCPU" postprocess "$T/rec/prof.tar.gz"
only_itself 1 "$PROFCPU" fold "$T/rec/perf.data"
only_itself 1 "$PROFCPU" fold --pid --kernel --jit "$T/rec"
only_itself 1 "$PROFCPU" flamegraph "$T/rec"
only_itself 1 "$PROFCPU" ps
only_itself 1 "$PROFCPU" doctor -p "$SHARES_PID"
# The command to record is the only other program.
only_itself 2 "$PROFCPU" collect -o "$T/rec-c" -- "$BUILD/examples/shares" 1
