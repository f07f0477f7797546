#!/usr/bin/env bash
# Recordings of perf record --call-graph dwarf: our stacks are complete if perf's are, and equal. Stacks that cannot be
# unwound have a mark at the root, except in perf's form.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need perf gcc g++ python3
need_sampling

export HOME=$T # perf looks for copies of images there
cat >work.c <<'C'
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#define HIDDEN __attribute__((noinline, noclone))
static HIDDEN unsigned leaf(unsigned x) { for (volatile unsigned i = 0; i < 3000; i++) x += i; return x; }
static HIDDEN unsigned middle(unsigned x) { volatile char b[300]; b[x & 255] = 1; x += leaf(x); return x + b[3]; }
static HIDDEN int compare(const void *a, const void *b) { leaf(1); return *(const int *)a - *(const int *)b; }
static HIDDEN unsigned sorts(unsigned x) { int v[64]; for (int i = 0; i < 64; i++) v[i] = (int)((x *= 1664525u) >> 8); qsort(v, 64, sizeof(*v), compare); return (unsigned)v[3]; }
static HIDDEN unsigned deep(unsigned n, unsigned x) { unsigned y = n ? deep(n - 1, x + 1) : middle(x); __asm__ volatile("" : "+r"(y)); return y + 1; }
static HIDDEN unsigned sized(unsigned n) { volatile char b[n]; b[0] = 1; return middle(n) + b[0]; }
static void on_signal(int n) { for (int i = 0; i < 1500; i++) leaf((unsigned)n); }
int main(int argc, char **argv)
{
	struct itimerval every = {{0, 20000}, {0, 20000}};
	unsigned x = 1, depth = argc > 2 ? (unsigned)atoi(argv[2]) : 20;
	signal(SIGVTALRM, on_signal);
	setitimer(ITIMER_VIRTUAL, &every, NULL);
	for (long i = atol(argv[1]); i; i--) {
		x += sorts(x);
		for (int k = 0; k < 100; k++) {
			x += deep(depth, x);
			x += sized(100 + x % 500);
		}
	}
	return x == 7;
}
C
cat >objects.cc <<'C'
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>
#define HIDDEN __attribute__((noinline))
struct shape { virtual unsigned area(unsigned x) = 0; virtual ~shape() {} };
struct box : shape { HIDDEN unsigned area(unsigned x) override { for (volatile unsigned i = 0; i < 3000; i++) x += i; return x; } };
template <class T> HIDDEN T twice(shape &s, T x) { return s.area(x) + s.area(x + 1); }
HIDDEN unsigned throws(shape &s, unsigned x) { if (x % 3 == 0) throw std::runtime_error(std::to_string(x)); return twice(s, x); }
HIDDEN unsigned catches(shape &s, unsigned x) { try { return throws(s, x); } catch (const std::exception &e) { return e.what()[0] + s.area(x); } }
int main(int, char **argv)
{
	box b;
	unsigned x = 1;
	std::vector<unsigned> v(200);
	for (long i = atol(argv[1]); i; i--) {
		x += catches(b, x + i);
		for (unsigned k = 0; k < v.size(); k++) v[k] = x * k % 1009;
		std::sort(v.begin(), v.end(), [&](unsigned a, unsigned c) { return a < c; });
	}
	return x == 7;
}
C
gcc -g -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o work work.c || fail "the program does not build"
g++ -g -O2 -fomit-frame-pointer -o objects objects.cc || fail "the C++ program does not build"
gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -static-pie -o static work.c || fail "the static program does not build"

# Each sample of perf whose stack reaches main equals one of ours. Handlers return to the first instruction of
# __restore_rt; perf looks up the byte before it. Other tests cover samples that perf cannot unwind.
cat >same.py <<'PY'
import re, sys

def samples(path):
    frames = None
    for line in open(path):
        if line.startswith('#') or not line.strip():
            continue
        if line[0] not in ' \t':
            frames = []
            yield line, frames
        else:
            frames.append(re.sub(r'\s+', ' ', line).strip())

def same(perf, ours):
    if ' __restore_rt+0x0 ' in ours:
        return int(perf.split()[0], 16) + 1 == int(ours.split()[0], 16)
    return perf == ours

perf, ours = list(samples(sys.argv[1])), list(samples(sys.argv[2]))
if len(perf) != len(ours) or not perf:
    sys.exit(f'{len(perf)} samples of perf, {len(ours)} of ours')
longer = 0
for (head, theirs), (_, mine) in zip(perf, ours):
    if not any(' main+' in frame for frame in theirs):
        continue
    if len(mine) < len(theirs) or not all(map(same, theirs, mine)):
        sys.exit('\n'.join([head, 'perf:', *theirs, 'ours:', *mine]))
    longer += len(mine) > len(theirs)
print(f'{len(ours)} samples, {longer} of them with more callers than perf has')
if longer > len(ours) / 100:
    sys.exit('more callers than perf has')
PY

# as_perf NAME PROGRAM ARGUMENT...: checks that we have perf's complete stacks and no others.
as_perf() {
	local name=$1 share
	shift
	perf_record "$name.data" -q -B -F 999 -e cpu-clock:u --call-graph dwarf,16384 -- "$@"
	perf script --no-inline -i "$name.data" 2>"$T/perf.err" </dev/null >"$name.txt" || fail "perf script: $(cat "$T/perf.err")"
	"$PROFCPU" fold "$name.txt" >"$name.perf" || fail "perf's text of $name"
	"$PROFCPU" fold --names perf "$name.data" >"$name.ours" || fail "fold of $name gave $?"
	share=$(share_of "$name.ours" ';main[; ]')
	echo "$name: $(weight_of "$name.ours") ns, $share % under main; perf: $(share_of "$name.perf" ';main[; ]') %"
	at_least "$share" 97 || fail "$name: only $share % of the samples are under main"
	"$PROFCPU" postprocess --no-download -o "$name.rec" "$name.data" >"$name.out" 2>&1 || fail "postprocess of $name: $(cat "$name.out")"
	perf script --no-inline -F comm,pid,tid,time,period,event,ip,sym,symoff,dso -i "$name.data" 2>"$T/perf.err" </dev/null >"$name.frames" ||
		fail "perf script of frames: $(cat "$T/perf.err")"
	python3 same.py "$name.frames" "$name.rec/perf_script.out" || fail "stacks of $name differ from perf's"
	grep -qE '^stacks +[>0-9.]+ % complete' "$name.out" || fail "$name: no grades: $(cat "$name.out")"
	grep -qE '^_start|;_start;' "$name.ours" || fail "$name: no stack reaches the start of the thread"
}
as_perf work ./work 400
as_perf objects ./objects 60000
as_perf static ./static 400
for frame in ';main;deep;deep;.*deep;middle;leaf' ';main;sorts;.*;compare;leaf' ';main;sized;middle;leaf' ';on_signal;leaf'; do
	grep -q "$frame" work.ours || fail "work has no $frame: $(cut -c 1-300 work.ours)"
done

# Deeper than the copy: the known part below a mark, which perf's form omits.
perf_record cut.data -q -B -F 999 -e cpu-clock:u --call-graph dwarf,1024 -- ./work 200 300
"$PROFCPU" postprocess --no-download -o cut "$T/cut.data" >cut.out 2>&1 || fail "postprocess of truncated stacks: $(cat cut.out)"
grep -qE '^stacks .* truncated: .*copy-end' cut.out || fail "the reason of truncated stacks is not reported: $(cat cut.out)"
python3 - cut/report.json <<'PY' || fail "report.json: $(cat cut/report.json)"
import json, sys
s = json.load(open(sys.argv[1]))['stacks']
grades = ('complete', 'spliced', 'guessed', 'truncated', 'none')
assert s['by'] == 'unwinding' and s['truncated'] > 20 and s['truncated_by']['copy-end'] > 20
assert sum(s['truncated_by'].values()) == s['truncated']
assert sum(s[g] for g in grades) == json.load(open(sys.argv[1]))['samples']
assert s['frames']['found'] > 8 * s['truncated']
PY
cp cut/folded_stacks.out cut.full
"$PROFCPU" fold --names perf cut.data >cut.perf || fail "fold of truncated stacks"
grep -q 'truncated' cut/perf_script.out cut.perf && fail "perf's form has a mark"
grep -q '^work;\[truncated\];deep;deep;.*;middle;leaf ' cut.full || fail "no mark: $(cut -c 1-200 cut.full)"
grep -q '\[truncated\]' cut/flamegraph.svg || fail "no mark in the picture"
[ "$(weight_of cut.full)" = "$(weight_of cut.perf)" ] || fail "weights differ between the forms of names"

# A limit cuts at the root, like perf script's; only the full form marks it.
perf script --no-inline --max-stack 5 -i work.data 2>/dev/null </dev/null | "$PROFCPU" fold - >five.perf
"$PROFCPU" fold --names perf --max-stack 5 work.data >five.ours || fail "fold --max-stack"
diff <(grep ';leaf' five.perf | grep -v on_signal) <(grep ';leaf' five.ours | grep -v on_signal) >diff.txt || fail "--max-stack cuts differently from perf: $(head -n 20 diff.txt)"
"$PROFCPU" fold --max-stack 5 work.data >five.full || fail "fold --max-stack"
grep -qE '^work;\[truncated\](;[^;]*){5} ' five.full || fail "no mark at the limit: $(cat five.full)"
refuses "$PROFCPU" fold --max-stack 0 work.data
refuses "$PROFCPU" fold --names perf --grades work.data

# Unwound stacks stay in the recording: the result is the same without the files used for unwinding.
mv work work.away
for input in work.rec work.rec/prof.tar.gz; do
	"$PROFCPU" postprocess -q --offline -o there "$input" >there.out 2>&1 || fail "postprocess of $input without the program: $(cat there.out)"
	for file in flamegraph.svg folded_stacks.out perf_script.out report.json; do
		cmp "work.rec/$file" "there/$file" || fail "$file of $input differs without the program"
	done
	rm -r there
done
cp -r work.rec damaged
printf 'x' | dd of=damaged/symbols/stacks bs=1 seek=20 conv=notrunc status=none
mv work.away work
"$PROFCPU" postprocess -q damaged >damaged.out 2>&1 || fail "postprocess with damaged stacks: $(cat damaged.out)"
grep -q 'unwound stacks .*: cannot be used' damaged.out || fail "damage is not reported: $(cat damaged.out)"
cmp work.rec/folded_stacks.out damaged/folded_stacks.out || fail "stacks differ when they are unwound again"

# Without this machine's files only the sampled frame is known.
"$PROFCPU" fold --offline work.data >offline.full 2>/dev/null || fail "fold --offline"
grep -q '^work;\[truncated\];[^;]* [0-9]*$' offline.full || fail "offline: $(head -n 3 offline.full)"
