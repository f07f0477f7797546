#!/usr/bin/env bash
# libdw unwinds 32-bit programs whose call frame information is small on disk but large in memory. In a control group of
# 64 MiB, profcpu folds the recording; a small program beside them keeps its stacks.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_root
need_sampling
need_32_bit
# shellcheck source=tests/e2e/memory_group.sh
. "$TESTS/e2e/memory_group.sh"

cat >good.c <<'C'
volatile long x;
__attribute__((noinline)) static void leaf(void) { for (;;) x++; }
__attribute__((noinline)) static void outer(void) { leaf(); x++; }
int main(void) { outer(); }
C
gcc -m32 -O0 -o good good.c || fail "good.c does not build"
# 40 MB of call frame information, as a hole.
cat >large.c <<'C'
__asm__(".section .debug_frame,\"\",@progbits\n.zero 40000000\n.text\n");
int main(void) { for (;;) ; }
C
# Each of 500 states that are kept has 16 MiB: the rule of register 1048576.
cat >states.c <<'C'
__asm__(".text\n.globl spin\n.type spin,@function\nspin:\n.cfi_startproc\n.cfi_escape 0x05,0x80,0x80,0x40,0x01\n"
	".rept 500\n.cfi_escape 0x0a\n.endr\n1: jmp 1b\n.cfi_endproc\n.size spin,.-spin\n");
void spin(void);
int main(void) { spin(); }
C
pids=()
for program in large states good; do
	[ "$program" = good ] || gcc -m32 -o "$program.full" "$program.c" || fail "$program does not build"
	[ "$program" = good ] || cp --sparse=always "$program.full" "$program"
	rm -f "$program.full"
	start "$program" "./$program"
	pids+=("$STARTED")
done
sleep 0.3
"$PROFCPU" collect -q -p "$(IFS=, && echo "${pids[*]}")" -F 199 -d 2 --record-only -o rec >out 2>err || fail "collect: $(cat err)"
for pid in "${pids[@]}"; do stop "$pid"; done
measure "$PROFCPU" fold rec >folded
echo "fold: $MIB MiB"
[ "$STATUS" = 0 ] || fail "fold: exit $STATUS: $(cat err)"
grep -q '^good;.*main;outer;leaf ' folded || fail "the small program has no stacks: $(head -n 5 folded)"
[ "$(cut -d ';' -f 1 folded | sort -u | wc -l)" = 3 ] || fail "a program is missing: $(cut -c 1-200 folded)"
# Not even the process for libdw is ended for want of memory.
killed=$(cat "$GROUP/memory.oom_control" "$GROUP/memory.events" 2>/dev/null | awk '$1 == "oom_kill" { print $2 }')
[ "$killed" = 0 ] || fail "the kernel ended ${killed:-an unknown number of} processes: $(cat err)"
