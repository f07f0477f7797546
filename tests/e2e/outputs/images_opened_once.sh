#!/usr/bin/env bash
# Post-processing opens the file of an image once, for its names, bounds of functions, lines and unwinding together.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need strace gcc
need_sampling

export HOME=$T # profcpu looks for copies of images there
cat >program.c <<'C'
static __attribute__((noinline)) unsigned leaf(unsigned x) { for (volatile unsigned i = 0; i < 30000; i++) x += i; return x; }
static __attribute__((noinline)) unsigned middle(unsigned x) { return leaf(x) + 1; }
int main(void) { unsigned x = 0; for (int i = 0; i < 20000; i++) x += middle(x); return x == 7; }
C
gcc -O1 -s -o program program.c || fail "gcc"
"$PROFCPU" collect --record-only --keep-stacks=all -q -F 999 -o recording -- ./program >log 2>&1 || fail "collect: $(cat log)"
cp recording/perf.data data

# opened_once COMMAND...: runs profcpu under strace, and checks how often it opens the program, by path or by components.
opened_once() {
	local times
	strace -f -qq -e trace=open,openat,openat2 -o trace "$PROFCPU" "$@" >out 2>err || fail "$*: $(cat err)"
	times=$(grep -cE "[\"/]program\".* = [0-9]+" trace)
	[ "$times" = 1 ] || fail "$*: opened the program $times times: $(grep "program\"" trace)"
}
opened_once fold --names full --lines data
# Three functions without names, so unwinding and bounds worked.
grep -qE 'program;.*\[program\+0x[0-9a-f]+\];\[program\+0x[0-9a-f]+\];\[program\+0x[0-9a-f]+\] ' out ||
	fail "no stack of three functions: $(head -n 5 out)"
opened_once fold --names perf data
opened_once postprocess -q -o again data
