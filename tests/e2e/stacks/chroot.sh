#!/usr/bin/env bash
# A service that called chroot() after its start, and profcpu with the rights of a container's root: the target's files
# cannot be opened. Our own files of the same build id unwind and name it; another file at the same path does not.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need gcc readelf setpriv

export HOME=$T # perf's copies of images would be there
cat >service.c <<'C'
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define STEP(name, next) __attribute__((noinline)) static unsigned name(unsigned x) { return next(x * 3 + 1) + 1; }
__attribute__((noinline)) static unsigned leaf(unsigned x)
{
	for (volatile int i = 0; i < 100000; i++)
		x = x * 31 + (unsigned)i;
	return x;
}
STEP(inner, leaf)
STEP(outer, inner)
int main(int argc, char **argv)
{
	time_t end = time(NULL) + 60;
	unsigned x = 0;

	if (argc != 2 || chroot(argv[1]) || chdir("/"))
		return 1;
	while (time(NULL) < end)
		x += outer(x);
	return x == 1;
}
C
gcc -O1 -fomit-frame-pointer -fno-optimize-sibling-calls -o service service.c || fail "gcc"
mkdir empty
caps=-all,+chown,+dac_override,+fowner,+setgid,+setuid,+setpcap,+kill,+sys_ptrace,+perfmon,+syslog
start service ./service "$T/empty"
wait_for_cpu "$STARTED" 200
record_service() { # DIRECTORY
	setpriv --bounding-set="$caps" --inh-caps="$caps" "$PROFCPU" collect -p "$STARTED" -F 499 -d 2 -o "$1" >log 2>&1 ||
		fail "collect: $(cat log)"
}
record_service same
grep -q '^stacks  *100.00 % complete' log || fail "stacks are not whole: $(cat log)"
grep -q 'service;_start;.*main;outer;inner;leaf ' same/folded_stacks.out || fail "no names: $(head -n 3 same/folded_stacks.out)"

# The process keeps its program; a file that another build put at its path is not taken.
gcc -O0 -o other service.c || fail "gcc"
mv other service
record_service changed
grep -q 'main;outer;inner;leaf ' changed/folded_stacks.out || fail "the running program is not named: $(head -n 3 changed/folded_stacks.out)"

# Only CAP_CHECKPOINT_RESTORE gives a library that was deleted. The report says so. Perf's copy of it names and unwinds.
{
	sed -n '/^#define/,/^STEP(outer/p' service.c
	echo 'unsigned run(unsigned x) { return outer(x) + 1; }'
} >deep.c
sed -e '/^STEP/d' -e '/^#define STEP/d' -e '/^__attribute__/,/^}/d' -e 's/outer(x)/run(x)/' -e '1i unsigned run(unsigned);' service.c >caller.c
gcc -O1 -fomit-frame-pointer -fno-optimize-sibling-calls -shared -fPIC -o libdeep.so deep.c || fail "gcc"
gcc -O1 -fomit-frame-pointer -o caller caller.c ./libdeep.so || fail "gcc"
start caller ./caller "$T/empty"
wait_for_cpu "$STARTED" 200
id=$(readelf -n libdeep.so | sed -n 's/.*Build ID: //p')
copy=.debug/.build-id/${id:0:2}/${id:2}
mkdir -p "$copy"
cp libdeep.so "$copy/later"
rm libdeep.so
record_service deleted
grep -q 'libdeep.so: its file is gone.*CAP_CHECKPOINT_RESTORE' log || fail "no reason: $(cat log)"
mv "$copy/later" "$copy/elf"
record_service copied
grep -q '^stacks  *100.00 % complete' log || fail "stacks are not whole: $(cat log)"
grep -q 'main;run;outer;inner;leaf ' copied/folded_stacks.out || fail "no names: $(head -n 3 copied/folded_stacks.out)"
exit 0
