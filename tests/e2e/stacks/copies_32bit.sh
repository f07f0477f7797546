#!/usr/bin/env bash
# Copies of stacks of 32-bit programs may hold secrets. They are blanked once their callers are known, except with
# --keep-stacks=all. The stacks stay whole, here and on another machine.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need_32_bit

cat >secret.c <<'C'
#include <string.h>
#include <time.h>
#define F(n, m) __attribute__((noinline)) static unsigned n(unsigned x) { return m(x + 1) + 1; }
__attribute__((noinline)) static unsigned leaf(unsigned x)
{
	for (volatile unsigned i = 0; i < 100000; i++)
		x += i;
	return x;
}
F(middle, leaf)
F(outer, middle)
int main(void)
{
	volatile char secret[64];
	const char *text = "EFGHIJKLMNOP";
	time_t end = time(NULL) + 60;

	for (int i = 0; i < 13; i++)
		secret[i] = text[i] ? text[i] - 4 : 0;
	while (time(NULL) < end)
		if (outer(1) == 1)
			return secret[0];
	return 0;
}
C
gcc -m32 -O1 -fno-optimize-sibling-calls -o secret32 secret.c || fail "secret.c does not build"
start target ./secret32
target=$STARTED
sleep 0.2

secrets() { grep -a -c ABCDEFGHIJKL <"$1"; }
in_archive() { tar -xzOf "$1/prof.tar.gz" | grep -a -c ABCDEFGHIJKL; }
whole() { # RECORDING: nearly all samples have the callers
	"$PROFCPU" fold "$@" >folded 2>fold.err || fail "fold: $(cat fold.err)"
	awk '{ all += $NF } /main;outer;middle;leaf/ { good += $NF } END { exit !(good > 0.9 * all) }' folded ||
		fail "$1: $(head -n 3 folded)"
}

collect() { # RECORDING OPTION...
	local out=$1
	shift
	"$PROFCPU" collect -q -p "$target" -F 99 -d 1 -o "$out" "$@" >out 2>err || fail "collect $*: $(cat err)"
}

collect default
[ "$(secrets default/perf.data)" = 0 ] || fail "perf.data has the secret"
[ "$(in_archive default)" = 0 ] || fail "prof.tar.gz has the secret"
whole default
"$PROFCPU" postprocess -q default || fail "postprocess again"
whole default
mkdir elsewhere && tar -xzf default/prof.tar.gz -C elsewhere || fail "cannot unpack"
whole --offline "$(dirname "$(find elsewhere -name perf.data)")"
perf report -i default/perf.data --stdio >perf.out 2>perf.err || fail "perf cannot read it: $(cat perf.err)"

# They are needed until they are unwound.
collect later --record-only
[ "$(secrets later/perf.data)" -gt 0 ] || fail "--record-only has no copies"
"$PROFCPU" postprocess -q later || fail "postprocess"
[ "$(secrets later/perf.data)" = 0 ] || fail "the copies stay"
whole later

collect all --keep-stacks=all
[ "$(secrets all/perf.data)" -gt 0 ] || fail "--keep-stacks=all has no copies"
whole all
