#!/usr/bin/env bash
# More different names or threads than fit into the memory that is left: in the text of perf script, in folded text, and in
# the perf map of a target.
# In a control group of 64 MiB, the commands succeed and say what they left out. No sample is missing.
# Runs alone.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_root
need_sampling
need gcc awk

# shellcheck source=tests/e2e/memory_group.sh
. "$TESTS/e2e/memory_group.sh"

# small COMMAND...: it ends well in the group.
small() {
	measure "$@" >out
	echo "$*: $MIB MiB"
	[ "$STATUS" = 0 ] || fail "$*: exit $STATUS, $MIB MiB: $(cat err)"
}
says_what_is_left_out() {
	grep -q 'times an address, a name or a thread was left out' err || fail "$1 does not say what it left out: $(cat err)"
}
weights() { awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$1"; }

awk 'BEGIN { for (i = 0; i < 180000; i++)
	printf "prog 1 [000] %d.000001: 1 cycles:\n\t%x function_number_%08d+0x4 (/x)\n\t10 main (/x)\n\n", i, 4096 + 16 * i, i }' >script.txt
small "$PROFCPU" fold script.txt
says_what_is_left_out fold
grep -q '^prog;main;\[left out\] [0-9]*$' out || fail "fold has no such frame: $(tail -n 2 out)"
[ "$(weights out)" = 180000 ] || fail "fold has $(weights out) of 180000 samples"
small "$PROFCPU" flamegraph script.txt
says_what_is_left_out flamegraph

awk 'BEGIN { for (i = 0; i < 1000000; i++)
	printf "prog%d %d [000] %d.000001: 1 cycles:\n\t10 main (/x)\n\n", i, i + 1, i }' >threads.txt
small "$PROFCPU" fold threads.txt
says_what_is_left_out fold
grep -qF '[left_out];main ' out || fail "fold has no such thread: $(tail -n 2 out)"
[ "$(weights out)" = 1000000 ] || fail "fold has $(weights out) of 1000000 samples"

awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "prog;main;function_number_%08d 1\n", i }' >names.folded
small "$PROFCPU" flamegraph names.folded
grep -q 'stacks in pictures lack frames or names' err || fail "flamegraph does not say what it left out: $(cat err)"
grep -qF '[left out]' out || fail "the picture does not show that names were left out"
grep -q '>all (1,000,000 counts, 100%)<' out || fail "the picture lacks stacks: $(grep -o '>all ([^)]*)<' out)"

cat >many.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N 180000L

/* Calls functions in anonymous memory, all of which a perf map names. */
int main(void)
{
	static const unsigned char code[] = {0xb9, 0x40, 0x9c, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	unsigned char *p = mmap(NULL, N * 64, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *f = fopen(path, "w");

	for (long i = 0; i < N; i++) {
		memcpy(p + i * 64, code, sizeof(code));
		fprintf(f, "%lx 40 method_of_a_class_with_number_%08ld\n", (long)(p + i * 64), i);
	}
	fclose(f);
	for (;;)
		((void (*)(void))(p + random() % N * 64))();
}
C
gcc -O1 -o many many.c || fail "cannot compile"
start many ./many
wait_for_cpu "$STARTED" 500
small "$PROFCPU" collect -q -F 19999 -p "$STARTED" -d 10 -o many.d
samples=$(report_number many.d samples)
[ "$samples" -gt 20000 ] || fail "only $samples samples"
[ "$(report_number many.d addresses)" -gt 0 ] || fail "nothing was left out: $(cat many.d/report.json)"
grep -q '"symbols_complete": false' many.d/manifest.json || fail "the recording claims to have all names"
small "$PROFCPU" fold many.d
total=$(weights out)
"$PROFCPU" postprocess -q many.d || fail "postprocess with more memory: exit $?"
[ -z "$(report_number many.d addresses)" ] || fail "with more memory, names are still left out"
[ "$(weights many.d/folded_stacks.out)" = "$total" ] || fail "samples are missing"
rm -f "/tmp/perf-$STARTED.map"
exit 0
