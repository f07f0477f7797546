#!/usr/bin/env bash
# A crash in any thread of profcpu prints its own functions, its version and build id, and the status is the signal's.
# The recording up to then can be read.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_sampling
need_release # sanitizers handle crashes themselves

# crash THREAD SIGNAL COMMAND...: runs profcpu, and sends the signal to its thread of this name, $DELAY s after its start.
# With 0 the thread may live for milliseconds: profcpu is stopped while its threads are looked at.
crash() {
	local thread=$1 signal=$2 status=0
	shift 2
	start crashed "$PROFCPU" "$@"
	python3 - "$STARTED" "$thread" "$signal" "$DELAY" <<'PY' || fail "$thread: no such thread: $(cat crashed.log)"
import ctypes, os, signal, sys, time
pid, name, number, delay = int(sys.argv[1]), sys.argv[2], getattr(signal, sys.argv[3]), float(sys.argv[4])
libc = ctypes.CDLL(None)
end = time.monotonic() + 30
def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:  # the thread has ended
        return ''
def threads():
    for tid in os.listdir(f'/proc/{pid}/task') if lives() else ():
        yield pid, tid
        for child in read(f'/proc/{pid}/task/{tid}/children').split():
            yield child, child
def lives():
    return read(f'/proc/{pid}/stat').rpartition(')')[2][1:2] not in ('', 'Z')
def signals(number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # the shell reaps profcpu as soon as it has ended
        pass
def resume():
    signals(signal.SIGCONT)
def stop():
    signals(signal.SIGSTOP)
while time.monotonic() < end and lives():
    if not delay:
        resume()
        time.sleep(0.001)
        stop()
    for of, tid in threads():
        found = read(f'/proc/{of}/task/{tid}/comm').strip() == name
        if found and (name != 'ask' or of != pid):  # the process that asks, and its thread that waits
            time.sleep(delay)
            failed = libc.syscall(234, int(of), int(tid), int(number))  # tgkill
            resume()
            sys.exit('the thread ended before the signal' if failed else 0)
sys.exit(1)
PY
	wait "$STARTED" || status=$?
	[ "$status" = $((128 + $(kill -l "${signal#SIG}"))) ] || fail "$thread: $signal gave $status: $(cat crashed.log)"
	grep -qE "^profcpu: thread $thread \(TID [0-9]+\): crashed: $signal from PID [0-9]+; " crashed.log ||
		fail "$thread: no line of the crash: $(cat crashed.log)"
	grep -qE "^profcpu: version [0-9.]+, build id [0-9a-f]{40}$" crashed.log || fail "$thread: no build id: $(cat crashed.log)"
}
# prints FUNCTION: the printed stack has it.
prints() { grep -qE "^profcpu: #[0-9]+ $1\+0x[0-9a-f]+$" crashed.log || fail "$1 is not in: $(cat crashed.log)"; }
reads() { # DIR
	"$PROFCPU" fold "$1" >folded 2>fold.log || fail "$1: fold gave $?: $(cat fold.log)"
	grep -q . folded || fail "$1: no sample can be read: $(cat fold.log)"
}

start_shares 60 -i 0
DELAY=1.5
for thread in profcpu:record_run code-reader:code_reader_main blocked-reader:reader_main waker-reader:read_requests \
	jit-capture:capture_main ask:ask_answer; do
	for signal in SIGSEGV SIGABRT; do
		crash "${thread%:*}" "$signal" collect --off-cpu -F 499 -d 30 -o rec -p "$SHARES_PID"
		prints "${thread#*:}"
		reads rec
		rm -rf rec
	done
done
crash profcpu SIGSYS collect -F 499 -d 30 -o rec -p "$SHARES_PID"
prints main
reads rec

# This thread lives for some milliseconds after the recording, which is longer than python takes to start.
DELAY=0
crashed=
for ((i = 0; i < 10; i++)); do
	(crash kernel-map SIGBUS collect -F 499 -d 4 -o "whole$i" -p "$SHARES_PID" && prints kernel_map_thread) >try.log 2>&1 && crashed=1 && break
done
[ "$crashed" ] || fail "kernel-map: $(cat try.log)"
reads "whole$i"
echo "functions of each thread are printed"
