#!/usr/bin/env bash
# profcpu stacks: each thread is found where it really is, with its state, and the process keeps running.
# Runs beside others.
# May take 600 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc python3
need_sampling
need_published parked-net8 parked-net9 parked-net10

# stacks FILE ARG...: writes them to FILE; messages are in err.
stacks() { "$PROFCPU" stacks "${@:2}" >"$1" 2>err || fail "stacks ${*:2}: exit $?: $(cat err)"; }
# checked WHAT MORE SOURCE ARG...: repeats if a thread had no CPU in time, as on a busy machine.
checked() {
	local try
	for try in 1 2 3 4 5; do
		stacks all.json --json "${@:4}"
		python3 "$TESTS/e2e/commands/stacks.py" all.json "$2" "$3" >problem 2>&1 && return
		echo "$1: try $try: $(head -c 2000 problem)"
	done
	fail "$1: $(head -c 2000 problem)"
}
# start_parked NAME ARG...: starts that publish; its PID is in $STARTED.
start_parked() {
	start "$1" "$PUBLISHED/$1/parked" "${@:2}"
	started_dotnet
	wait_for 120 grep -q '^parked pid' "$1.log" || fail "$1 did not start: $(cat "$1.log")"
}

for version in 8 9; do
	start_parked "parked-net$version" 600
	checked ".NET $version" 0 kernel -p "$STARTED"
	stop "$STARTED"
done
start_parked parked-net10 600
PARKED=$STARTED
checked ".NET 10" 0 kernel -p "$PARKED"

stacks text -p "$PARKED"
grep -qx "process $PARKED (parked): [0-9]* threads, [0-9]* different stacks" text || fail "no head: $(head -n 3 text)"
awk '/^$/ { on = 0 } /^1 thread, waiting in recvmsg$/ { on = 1 } on' text >group
grep -qE '^  ReadsSocket: [0-9]+$' group && grep -qx '    Places.ReadsSocket()' group || fail "no group of the socket: $(cat text)"
grep -qE '^    (SystemNative_ReceiveMessage|__libc_recvmsg|recvmsg)\b.* \([^ ]*\.so[.0-9]*\)$' group || fail "no native frame: $(cat group)"
if [ "$(id -u)" = 0 ]; then
	grep -qx '    do_syscall_64 \[kernel\]' group || fail "no frames of the kernel: $(cat group)"
fi
stacks raw --raw-names -p "$PARKED"
grep -q '^    .*\[parked\] Places::Sleeps()' raw || fail "no raw names: $(grep Sleeps raw)"
umask 022
stacks out -o "$T/file" -p "$PARKED"
[ "$(stat -c %a file)" = 600 ] || fail "others may read file: $(stat -c %a file)"
chmod 644 file
stacks out -o "$T/file" -p "$PARKED"
[ "$(stat -c %a file)" = 600 ] || fail "others may read the file over an older one: $(stat -c %a file)"
[ ! -s out ] && grep -q 'Places.Sleeps()' file || fail "-o does not write the file"

echo "the process is not stopped"
# Its busy thread always runs or waits for a CPU. The rest of the time it was stopped. The kernel adds a part of each
# sum only at the next tick or switch, so some milliseconds are always missing.
BUSY=$(grep -lx Busy "/proc/$PARKED/task"/*/comm | cut -d / -f 5)
now_ms() { echo $(($(date +%s%N) / 1000000)); }
busy_ms() { awk '{ printf "%.0f\n", ($1 + $2) / 1000000 }' "/proc/$PARKED/task/$BUSY/schedstat"; }
before=$(busy_ms) begin=$(now_ms)
for ((i = 0; i < 20; i++)); do
	stacks text -p "$PARKED"
done
took=$(($(now_ms) - begin)) accounted=$(($(busy_ms) - before))
echo "$took ms for 20 times; $accounted ms of them accounted"
at_least "$accounted" "$((took * 8 / 10))" || fail "a thread did not run for $((took - accounted)) of $took ms"
if command -v strace >/dev/null && is_release; then
	strace -f -qq -e trace=ptrace,kill,tkill,tgkill,pidfd_send_signal,rt_sigqueueinfo,rt_tgsigqueueinfo -o calls "$PROFCPU" stacks -p "$PARKED" >out 2>err ||
		fail "under strace: $(cat err)"
	! grep -E "ptrace\(|\($PARKED\b" calls || fail "it stops or signals the process"
fi
stop "$PARKED"

echo "1,000 threads, and others that end"
start_parked parked-net10 600 1000 churn
PARKED=$STARTED
checked "1,000 threads" 1000 kernel -p "$PARKED"
if [ "$(uname -m)" = x86_64 ] && is_release; then
	echo "memory that may not be read"
	for error in 1 38; do # EPERM, ENOSYS of process_vm_readv
		for try in 1 2 3 4 5; do # a busy machine lets the sampler miss threads
			"$BUILD/helpers/seccomp_exec" 310 "$error" "$PROFCPU" stacks --json -p "$PARKED" >all.json 2>err &&
				python3 "$TESTS/e2e/commands/stacks.py" all.json 1000 runtime >problem 2>&1 && break
			echo "try $try: $(cat err) $(head -c 2000 problem)"
		done
		[ "$(grep -c 'its memory may not be read\|does not show its memory' err)" = 1 ] && grep -q 'which stops all threads' err || fail "not told: $(cat err)"
		python3 "$TESTS/e2e/commands/stacks.py" all.json 1000 runtime >problem 2>&1 || fail "by the runtime: $(head -c 2000 problem)"
	done
	# Without samples, other threads still have stacks.
	"$BUILD/helpers/seccomp_exec" 298 1 "$PROFCPU" stacks -p "$PARKED" >text 2>err || fail "without samples: $(cat err)"
	grep -q '\[no stack: it runs, and profcpu cannot open ' text && grep -q 'Places.WaitsForLock()' text || fail "without samples: $(cut -c 1-200 text | head -c 4000)"
fi
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir other && cp "$PROFCPU" other/profcpu && chmod 755 other other/profcpu
	status=0
	setpriv --reuid 65534 --regid 65534 --clear-groups other/profcpu stacks -p "$PARKED" >out 2>err || status=$?
	[ "$status" = 1 ] && [ "$(grep -c 'error:' err)" = 1 ] || fail "another user: exit $status: $(cat err)"
	grep -q "process $PARKED: its memory may not be read: it belongs to user 0; run with CAP_SYS_PTRACE" err || fail "another user: $(cat err)"
	grep -q '\[no stack: the memory of its process may not be read\]' out && grep -q '^  Busy: ' out || fail "another user sees no threads: $(head -c 2000 out)"
fi
stop "$PARKED"

echo "native programs"
cat >native.c <<'C'
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2];

__attribute__((noinline)) static void in_lock(void) { pthread_mutex_lock(&lock); write(1, "", 0); }
__attribute__((noinline)) static void in_read(void) { char c; read(pipes[0], &c, 1); write(1, "", 0); }
__attribute__((noinline)) static void in_poll(void) { poll(NULL, 0, -1); write(1, "", 0); }
__attribute__((noinline)) static void in_loop(void) { for (volatile int i = 0;; i++) ; }
__attribute__((noinline)) static void ends(void) { usleep(20000); }
__attribute__((noinline)) static int down(int n)
{
	char pad[200];

	memset(pad, n, sizeof(pad));
	if (!n)
		return pause();
	int r = down(n - 1);

	return r + pad[r & 1];
}
static void in_depth(void) { down(3000); }
static void *thread(void *arg)
{
	((void (*)(void))arg)();
	return NULL;
}
static void start(void (*place)(void), const char *name)
{
	pthread_t t;
	if (!pthread_create(&t, NULL, thread, (void *)place))
		pthread_setname_np(t, name);
}
int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "ends")) {
		for (int i = 0; i < 100; i++)
			start(ends, "ends");
		usleep((unsigned)atoi(argv[2]));
		return 0;
	}
	pthread_mutex_lock(&lock);
	if (pipe(pipes))
		return 1;
	start(in_lock, "lock");
	start(in_read, "read");
	start(in_poll, "poll\033[31m");
	start(in_loop, "loop");
	start(in_depth, "depth");
	pause();
}
C
gcc -O1 -g -w -o native native.c -pthread || fail "no native program"
start native ./native
NATIVE=$STARTED
# in_place NAME FRAME STATE: its group has that frame and state.
in_place() {
	awk -v name="  $1: " 'BEGIN { RS = "" } index($0, "\n" name)' text >group
	grep -qE "^    $2 \(native\)$" group && grep -qE "^1 thread, $3$" group || fail "$1 is not in $2, $3: $(cat text)"
}
wait_for 20 sh -c "'$PROFCPU' stacks -p $NATIVE 2>/dev/null | grep -q '^    in_depth '" || fail "no stacks of a native program"
stacks text -p "$NATIVE"
in_place lock in_lock 'waiting in futex'
in_place read in_read 'waiting in read'
in_place 'poll\\x1b[31m' in_poll 'waiting in poll'
in_place native main 'waiting in pause'
in_place depth in_depth 'waiting in pause'
[ "$(grep -cx '    down (native)' group)" = 3001 ] || fail "not 3,001 frames: $(grep -c down group)"
for try in 1 2 3 4 5; do
	grep -q '^    in_loop (native)$' text && break
	stacks text -p "$NATIVE"
done
in_place loop in_loop running
kill -STOP "$NATIVE"
wait_for 20 grep -q '^State:.*T' "/proc/$NATIVE/status" || fail "it is not stopped"
stacks text -p "$NATIVE"
in_place lock in_lock 'stopped in futex'
kill -CONT "$NATIVE"
stop "$NATIVE"

echo "code with frame pointers: no caller is lost"
cat >framed.c <<'C'
#include <pthread.h>
#include <unistd.h>
#define HIDDEN __attribute__((noinline, noclone))
static int ends[2];
static HIDDEN long get(char *b) { long r = read(ends[0], b, 1); __asm__ volatile("" : "+r"(r)); return r; }
static HIDDEN long helper(char *b) { volatile char room[200]; room[3] = *b; long r = get(b) + room[3]; __asm__ volatile("" : "+r"(r)); return r; }
static void *work(void *x) { long r = get(x); __asm__ volatile("" : "+r"(r)); return x; }
int main(void) { pthread_t t; char b[8] = {0}; pipe(ends); pthread_create(&t, 0, work, b); helper(b); return 0; }
C
for options in -O0 "-O2 -fno-omit-frame-pointer" -O2; do
	# shellcheck disable=SC2086 # words are wanted
	gcc $options -g -w -o framed framed.c -pthread || fail "framed does not build with $options"
	start framed ./framed
	# A thread that has just begun may not wait yet.
	for try in 1 2 3 4 5; do
		sleep 0.1
		stacks text -p "$STARTED"
		[ "$(grep -cx '    get (framed)' text)" = 2 ] && break
	done
	grep -A1 -x '    get (framed)' text | tr -d '\n' | grep -q 'get (framed)    work (framed)' || fail "$options: a caller of the thread is lost: $(cat text)"
	grep -A2 -x '    get (framed)' text | tr -d '\n' | grep -q 'get (framed)    helper (framed)    main (framed)' || fail "$options: a caller is lost: $(cat text)"
	stop "$STARTED"
done

echo "processes that end"
for us in 0 1000 5000 10000 15000 20000 25000 30000; do
	./native ends "$us" &
	survives "$PROFCPU" stacks -p $!
	wait $!
done
refuses "$PROFCPU" stacks -p "$NATIVE"
grep -q "process $NATIVE does not exist" refused || fail "$(cat refused)"
for pause in 0.01 0.04 0.08; do
	start churn "$PUBLISHED/parked-net10/parked" 600 50
	started_dotnet
	wait_for 120 grep -q '^parked pid' churn.log || fail "it did not start: $(cat churn.log)"
	(sleep "$pause" && kill -KILL "$STARTED") &
	survives "$PROFCPU" stacks -p "$STARTED"
	wait "$!"
done

if [ "$(id -u)" = 0 ] && unshare --pid --mount true 2>/dev/null; then
	echo "another PID namespace"
	start inside unshare --pid --fork --kill-child --mount --mount-proc ./native
	wait_for 20 pgrep -P "$STARTED" >/dev/null || fail "no process inside"
	inside=$(pgrep -P "$STARTED")
	wait_for 20 sh -c "'$PROFCPU' stacks -p $inside 2>/dev/null | grep -q '^    in_poll '" || fail "nothing inside: $("$PROFCPU" stacks -p "$inside" 2>&1)"
	stacks all.json --json -p "$inside"
	grep -q "{\"tid\":$inside,\"tid_inside\":1,\"name\":\"native\"}" all.json || fail "no ids inside: $(cat all.json)"
	kill "$inside"
fi

echo "what is refused"
refuses "$PROFCPU" stacks -p 0
refuses "$PROFCPU" stacks -p 1,2
refuses "$PROFCPU" stacks x
refuses "$PROFCPU" stacks -o /dev/full -p $$
status=0
"$PROFCPU" stacks -p $$ >/dev/full 2>err || status=$?
[ "$status" = 1 ] && grep -q 'cannot write the stacks to stdout' err || fail "a full stdout: exit $status: $(cat err)"
mkdir temp
TMPDIR=$T/temp "$PROFCPU" stacks -p $$ >out 2>err || fail "TMPDIR: $(cat err)"
for pause in 0.005 0.01 0.02; do
	TMPDIR=$T/temp timeout -s TERM "$pause" "$PROFCPU" stacks -p $$ >out 2>&1
done
wait_for 20 sh -c '[ -z "$(ls temp)" ]' || fail "left: $(ls temp)"
exit 0
