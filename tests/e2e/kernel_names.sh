#!/usr/bin/env bash
# The kernel's names are read on a thread of their own while samples are begun: whoever is faster, the result is the same.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling

start reads sh -c 'while :; do dd if=/dev/zero of=/dev/null bs=1k count=100000; done'
record "$T/rec" --record-only -a -F 999 -d 2
in_kernel=$("$PROFCPU" fold --kernel "$T/rec/perf.data" | grep -c '_\[k\]')
[ "$in_kernel" -gt 10 ] || fail "only $in_kernel stacks with names of the kernel"
for command in fold flamegraph; do
	for i in 1 2 3 4; do
		# Sometimes alone, sometimes beside another one that takes the CPU.
		[ $((i % 2)) = 0 ] || start busy timeout 5 "$PROFCPU" fold "$T/rec/perf.data"
		# shellcheck disable=SC2086 # words
		"$PROFCPU" $command "$T/rec/perf.data" >"$T/out.$i" || fail "$command gave $?"
		cmp "$T/out.1" "$T/out.$i" || fail "$command gave something else the time $i"
	done
done
