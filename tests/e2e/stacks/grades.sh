#!/usr/bin/env bash
# A recording keeps the grade of each stack: counted, shown frame by frame, and archived. Damage to grades changes nothing
# else.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc python3 tar
need_sampling

# With frame pointers and deeper than the copy: the kernel's chain continues the stack.
cat >deep.c <<'C'
__attribute__((noinline)) static unsigned leaf(unsigned x) { for (volatile unsigned i = 0; i < 20000; i++) x += i; return x; }
__attribute__((noinline)) static unsigned deep(unsigned n, unsigned x) { unsigned y = n ? deep(n - 1, x + 1) : leaf(x); __asm__ volatile("" : "+r"(y)); return y + 1; }
int main(void) { for (unsigned x = 1;; x += deep(100, x)); }
C
gcc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls -o deep deep.c || fail "the program does not build"
start deep ./deep
record rec --record-only --call-graph full,1024 -F 999 -d 2 -p "$STARTED"
stop "$STARTED"
[ "$(stat -c %a rec/samples.idx)" = 600 ] || fail "samples.idx is readable for others"
[ "$(stat -c %s rec/samples.idx)" -gt 1000 ] || fail "samples.idx has no rows of incomplete stacks"
"$PROFCPU" postprocess --no-download rec >out || fail "postprocess: $(cat out)"
grep -qE '^frames +[0-9.]+ % found, [0-9.]+ % spliced' out || fail "spliced frames are not counted: $(cat out)"
python3 -c 'import json; s = json.load(open("rec/report.json")); assert s["stacks"]["by"] == "unwinding" and s["stacks"]["frames"]["spliced"] > 10 * s["samples"]' ||
	fail "report.json: $(cat rec/report.json)"

# Marks are shown frame by frame, at the root; nothing else changes.
"$PROFCPU" fold rec >plain || fail "fold"
"$PROFCPU" fold --grades rec >graded || fail "fold --grades"
"$PROFCPU" fold --grades rec/perf.data >beside || fail "fold --grades of perf.data"
cmp graded beside || fail "grades are missing if perf.data is the input"
grep -qE '^deep;.*;main_\[s\];deep_\[s\];.*deep_\[s\];deep;.*leaf ' graded || fail "no spliced frames: $(head -n 1 graded)"
diff <(sed 's/_\[[sg]\]//g' graded | sort) <(sort plain) >/dev/null ||
	[ "$(weight_of graded)" = "$(weight_of plain)" ] || fail "stacks differ by more than their marks"
grep -q '_\[' plain && fail "marks without --grades"
"$PROFCPU" flamegraph --grades rec >graded.svg || fail "flamegraph --grades"
grep -q 'deep_\[s\]' graded.svg || fail "no marks in the picture"

# The archive contains the grades.
for input in rec rec/prof.tar.gz rec/perf.data; do
	"$PROFCPU" postprocess -q --offline -o copy "$input" || fail "postprocess of $input"
	cmp rec/samples.idx copy/samples.idx || fail "$input lost its samples.idx"
	cmp rec/report.json copy/report.json || fail "$input has another report.json"
	rm -r copy
done

# A damaged or cut file loses only grades, and one line reports it.
cp -r rec bad
printf '\377' | dd of=bad/samples.idx bs=1 seek=24 conv=notrunc status=none
"$PROFCPU" postprocess --no-download bad >bad.out 2>&1 || fail "postprocess with a damaged samples.idx: $(cat bad.out)"
[ "$(grep -c 'samples.idx: cannot be used' bad.out)" = 1 ] || fail "the damage is not reported once: $(cat bad.out)"
grep -q 'by function names' bad.out || fail "grades from a damaged samples.idx: $(cat bad.out)"
# The mark of truncated stacks comes from samples.idx.
same_stacks() { # NAME DIR
	"$PROFCPU" fold "$2" 2>"$1.err" | cmp - <("$PROFCPU" fold whole | sed 's/;\[truncated\];/;/') || fail "$1 changes stacks"
}
cp -r rec whole
same_stacks 'a damaged samples.idx' bad
truncate -s -5 rec/samples.idx
"$PROFCPU" postprocess --no-download rec >cut.out 2>&1 || fail "postprocess with a cut samples.idx: $(cat cut.out)"
[ "$(grep -c 'samples.idx: cannot be used: it is cut' cut.out)" = 1 ] || fail "the cut is not reported once: $(cat cut.out)"
grep -q 'by function names' cut.out || fail "grades from a cut samples.idx: $(cat cut.out)"
rm rec/samples.idx
"$PROFCPU" postprocess --no-download rec >none.out 2>&1 || fail "postprocess without samples.idx"
grep -q 'by function names' none.out || fail "grades without a samples.idx: $(cat none.out)"
same_stacks 'a missing samples.idx' rec
grep -q 'samples.idx: cannot be used: No such file' 'a missing samples.idx.err' || fail "no word about it: $(cat none.out)"
