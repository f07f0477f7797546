#!/usr/bin/env bash
# A second thread reads the kernel's names while samples are processed. The result does not depend on which is faster.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc
need_sampling

start reads sh -c 'while :; do dd if=/dev/zero of=/dev/null bs=1k count=100000; done'
# Not the whole machine, because its programs may be replaced during the test.
record "$T/rec" --record-only -p "$STARTED" -F 2999 -d 2
in_kernel=$("$PROFCPU" fold --kernel "$T/rec/perf.data" | grep -c '_\[k\]')
[ "$in_kernel" -gt 10 ] || fail "only $in_kernel stacks with names of the kernel"
for command in fold flamegraph; do
	for i in 1 2 3 4; do
		# Every second run competes for the CPU.
		[ $((i % 2)) = 0 ] || start busy timeout 5 "$PROFCPU" fold "$T/rec/perf.data"
		# shellcheck disable=SC2086 # words
		"$PROFCPU" $command "$T/rec/perf.data" >"$T/out.$i" || fail "$command gave $?"
		cmp "$T/out.1" "$T/out.$i" || fail "the output of $command differs in run $i"
	done
done

# If no thread can be created, the names are read in between, with the same result.
case $BUILD in
*san) ;; # a sanitizer has its own
*)
	without_threads "$PROFCPU" flamegraph "$T/rec/perf.data" >"$T/out.alone" 2>"$T/err" || fail "flamegraph gave $?: $(cat "$T/err")"
	grep -q 'no thread for you' "$T/err" || fail "pthread_create was not called"
	cmp "$T/out.1" "$T/out.alone" || fail "the output differs without a thread"
	;;
esac

# Messages and pictures of the first run, and of a run with its stored names.
for i in first second; do
	"$PROFCPU" postprocess "$T/rec" >"$T/$i.out" 2>&1 || fail "the $i postprocess gave $?: $(cat "$T/$i.out")"
	for f in flamegraph.svg folded_stacks.out perf_script.out; do
		mv "$T/rec/$f" "$T/$i.$f"
		cmp "$T/first.$f" "$T/$i.$f" || fail "$f differs with stored names"
	done
done
grep -A 4 '^hottest' "$T/first.out" >"$T/first.hottest"
grep -A 4 '^hottest' "$T/second.out" | cmp "$T/first.hottest" - || fail "the order of the hottest functions differs"
