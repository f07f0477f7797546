#!/usr/bin/env bash
# fold --inline shows the functions that were inlined at an address, and --context their source lines.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc nm

cat >app.c <<'C'
static inline __attribute__((always_inline)) int deep(int x) { volatile int s = 0; for (int i = 0; i < x; i++) s += i; return s; }
static inline __attribute__((always_inline)) int shallow(int x) { return deep(x) + 1; }
__attribute__((noinline)) int hot(int x) { return shallow(x) * 2; }
int main(int argc, char **argv) { (void)argv; return hot(argc); }
C
gcc -O1 -g -no-pie -o app app.c || fail "cannot compile"
at=$((16#$(nm app | sed -n 's/ T hot$//p')))
size=$((16#$(nm -S app | sed -n 's/^[0-9a-f]* \([0-9a-f]*\) T hot$/\1/p')))
for ((i = 0; i < size; i++)); do
	printf 'app 1/1 [000] 1.5: 1 cycles:\n\t%16x hot+0x%x (%s)\n\t  1 main (/nowhere/to/be/found)\n\n' $((at + i)) "$i" "$T/app"
done >text
"$PROFCPU" fold --inline text >out || fail "fold --inline gave $?"
grep -q '^app;main;hot;shallow;deep [0-9]*$' out || fail "no inlined functions: $(cat out)"
"$PROFCPU" fold --inline --context text >out || fail "fold --context gave $?"
grep -q '^app;main;hot:app.c:3;shallow:app.c:2;deep:app.c:1 [0-9]*$' out || fail "no source lines: $(cat out)"
# Addresses outside the file: lookup by symbol and offset.
printf 'app 1/1 [000] 1.5: 1 cycles:\n\t1 main+0x0 (%s)\n\t2 no_such+0x1 (%s)\n\t3 k+0x1 ([kernel.kallsyms])\n\n' "$T/app" "$T/app" >text
"$PROFCPU" fold --inline text >out || fail "fold --inline gave $?"
[ "$(cat out)" = "app;k;no_such;main 1" ] || fail "by symbol: $(cat out)"
