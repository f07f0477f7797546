#!/usr/bin/env bash
# Each limit that costs stacks is named in the report with its cost, and its remedy works. The test sets a sysctl and
# restores it, so it runs alone.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc
need_sampling

echo "few descriptors"
# A stack through eighty libraries without frame pointers.
n=80
for ((i = 0; i < n; i++)); do
	echo "extern int f$((i + 1))(int); int f$i(int x) { return f$((i + 1))(x + 1) + x; }" >f.c
	gcc -O1 -fomit-frame-pointer -fno-optimize-sibling-calls -fPIC -shared -o lib$i.so f.c || fail "no library"
done
cat >chain.c <<'C'
#include <stdlib.h>
#include <time.h>
extern int f0(int);
volatile int work;
int fEND(int x)
{
	for (int i = 0; i < 20000000; i++)
		work += i ^ x;
	return work;
}
int main(int argc, char **argv)
{
	for (time_t end = time(NULL) + atoi(argv[argc - 1]); time(NULL) < end;)
		f0(argc);
	return 0;
}
C
sed -i "s/fEND/f$n/" chain.c
libs=()
for ((i = 0; i < n; i++)); do libs+=("lib$i.so"); done
gcc -O1 -fomit-frame-pointer -rdynamic -o chain chain.c -Wl,--no-as-needed "${libs[@]}" -Wl,-rpath,"$T" || fail "no program"
(ulimit -n 128 && "$PROFCPU" collect --no-download -F 999 -o few -- ./chain 2 >out 2>err) || fail "$(cat err)"
lost=$(report_number few open_files)
at_least "${lost:-0}" $(($(report_number few samples) * 9 / 10)) && at_least "$lost" 20 || fail "only ${lost:-0} stacks are counted: $(cat out)"
[ "$(grep -c 'too many open files' out)" = 1 ] || fail "not one line: $(cat out)"
grep -Eq "^limits +$lost  stacks lack rules of files that were not opened: too many open files; raise the hard limit as root, for example: ulimit -n 4096\$" out ||
	fail "no limit with its cost: $(cat out)"
"$PROFCPU" postprocess --offline few >again 2>err || fail "$(cat err)"
[ "$(grep '^limits' again)" = "$(grep '^limits' out)" ] || fail "postprocess reports other limits: $(cat again)"
# The remedy; where the hard limit is lower already, the rest needs root.
if ulimit -n 4096 2>/dev/null; then
	"$PROFCPU" collect --no-download -F 999 -o many -- ./chain 2 >out 2>err || fail "$(cat err)"
	grep -q '^limits' out && fail "a limit without a cost: $(cat out)"
	at_least "$(report_number many complete)" $(($(report_number many samples) * 9 / 10)) || fail "the remedy does not help: $(cat out)"
fi

echo "the kernel's largest stack"
"$PROFCPU" collect --no-download --call-graph fp -F 499 -o deep -- "$BUILD/helpers/workload" deep 300 0.5 >out 2>err || fail "$(cat err)"
at_least "$(report_number deep max_stack)" 20 || fail "no deep stacks are counted: $(cat out)"
grep -q '^limits .* stacks end at the kernel.s largest number of frames; raise it: sysctl kernel.perf_event_max_stack=1024$' out || fail "$(cat out)"
"$PROFCPU" collect --no-download --call-graph fp -F 499 -o flat -- "$BUILD/helpers/workload" deep 30 0.5 >out 2>err || fail "$(cat err)"
grep -q '^limits' out && fail "a limit without a cost: $(cat out)"

echo "the kernel's highest frequency"
rate=/proc/sys/kernel/perf_event_max_sample_rate
[ -w $rate ] || exit 0
before=$(cat $rate)
trap 'echo "$before" >$rate; t_clean_up' EXIT
echo 300 >$rate || skip "needs to set $rate"
"$PROFCPU" collect --no-download -F 499 -o slow -- "$BUILD/helpers/workload" deep 30 0.3 >out 2>err || fail "$(cat err)"
echo "$before" >$rate
[ "$(report_number slow sample_rate_hz)" = 199 ] || fail "$(cat out slow/report.json)"
grep -Eq '^limits +199  Hz fewer than requested with -F; raise sysctl kernel.perf_event_max_sample_rate$' out || fail "$(cat out)"
exit 0
