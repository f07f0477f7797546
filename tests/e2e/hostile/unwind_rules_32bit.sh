#!/usr/bin/env bash
# libdw unwinds stacks of 32-bit programs. A program whose call frame information ends libdw or keeps it busy costs only its
# own stacks, the time is limited, and the report names it with a count.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need_32_bit

cat >good.c <<'C'
volatile long x;
#define F(n, m) __attribute__((noinline)) static void n(void) { m(); x++; }
__attribute__((noinline)) static void leaf(void) { for (;;) x++; }
F(inner, leaf)
F(middle, inner)
F(outer, middle)
int main(void) { outer(); }
C
gcc -m32 -O0 -o good good.c || fail "good.c does not build"
# The least number divided by -1: libdw 0.188 divides without a check. Its frame pointer leads nowhere.
cat >crash.c <<'C'
__asm__(".text\n.globl spin\n.type spin,@function\nspin:\n.cfi_startproc\n"
	".cfi_escape 0x16,0x08,0x0c,0x0f,0,0,0,0,0,0,0,0x80,0x09,0xff,0x1b\n"
	"movl $1,%ebp\n1: jmp 1b\n.cfi_endproc\n.size spin,.-spin\n");
void spin(void);
int main(void) { spin(); }
C
# Each of 500 frames has 30,000 pairs of DW_CFA_remember_state and DW_CFA_restore_state.
cat >slow.c <<'C'
__asm__(".text\n.globl down\n.type down,@function\ndown:\n.cfi_startproc\npushl %ebx\n.cfi_def_cfa_offset 8\n"
	".cfi_offset ebx,-8\n.rept 30000\n.cfi_escape 0x0a,0x0b\n.endr\n"
	"movl 8(%esp),%ebx\ntestl %ebx,%ebx\n2: jz 2b\ndecl %ebx\npushl %ebx\n.cfi_def_cfa_offset 12\ncall down\n"
	"addl $4,%esp\npopl %ebx\nret\n.cfi_endproc\n.size down,.-down\n");
void down(int);
int main(void) { down(500); }
C
for program in crash slow; do
	gcc -m32 -o $program $program.c || fail "$program does not build"
done

whole() { # RECORDING PROGRAM: percent of its samples that are whole
	"$PROFCPU" fold "$1" 2>fold.err |
		awk -v p="^$2;" '$0 ~ p { all += $NF } $0 ~ p && /;main;outer;middle;inner;leaf/ { good += $NF } END { print all ? int(100 * good / all) : 0 }'
}
# together SECONDS PROGRAM: records it beside the good one.
together() {
	start good ./good
	local good=$STARTED
	start bad "./$2"
	sleep 0.3
	"$PROFCPU" collect -q -p "$good,$STARTED" -F 499 -d "$1" --record-only -o "$2.rec" >out 2>err || fail "collect: $(cat err)"
	stop "$good"
	stop "$STARTED"
}

echo "rules that end libdw"
together 2 crash
"$PROFCPU" postprocess --no-download crash.rec >out 2>err || fail "$(cat err)"
at_least "$(report_number crash.rec samples)" 60 || fail "too few samples: $(cat out)"
at_least "$(whole crash.rec good)" 97 || fail "$(whole crash.rec good) % of the good program's stacks are whole: $(cat out err)"
grep -Eq 'warning: /.*/crash: libdw fails on its call frame information; .*; use --call-graph fp$' err || fail "the file is not named: $(cat err)"
cost=$(report_number crash.rec libdw_rules)
at_least "${cost:-0}" 20 || fail "the report does not count its stacks: $(cat out)"
grep -Eq "^limits +$cost  stacks lack rules of files on which libdw failed or took too long; use --call-graph fp for such programs$" out || fail "$(cat out)"
# Kept stacks say it, too.
"$PROFCPU" postprocess --no-download crash.rec >again 2>err || fail "$(cat err)"
[ "$(grep '^limits' again)" = "$(grep '^limits' out)" ] || fail "postprocess again reports other limits: $(cat again)"
at_least "$(whole crash.rec good)" 97 || fail "the good program's stacks are not whole when they are read again"

echo "rules that keep libdw busy"
for _ in 1 2 3; do
	rm -rf slow.rec
	together 2 slow
	TIMEFORMAT=%U
	{ time "$PROFCPU" postprocess --no-download slow.rec >out 2>err; } 2>seconds || fail "$(cat err)"
	n=$(report_number slow.rec libdw_rules)
	at_least "${n:-0}" 40 && break
done
at_least "${n:-0}" 40 || fail "the report does not count its stacks: $(cat out err)"
# Without a limit each of its stacks takes 0.1 s or more.
! is_release || at_least 6 "$(cat seconds)" || fail "$n slow stacks took $(cat seconds) s of CPU time"
at_least "$(whole slow.rec good)" 97 || fail "$(whole slow.rec good) % of the good program's stacks are whole: $(cat out err)"
grep -Eq 'warning: /.*/slow: libdw (fails|spends too long) on its call frame information; .*; use --call-graph fp$' err || fail "the file is not named: $(cat err)"
exit 0
