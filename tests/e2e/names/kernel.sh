#!/usr/bin/env bash
# The kernel's names are read on a thread of their own while samples are begun: whoever is faster, the result is the same.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc
need_sampling

start reads sh -c 'while :; do dd if=/dev/zero of=/dev/null bs=1k count=100000; done'
# Not the whole machine: programs there may be replaced while they are looked at.
record "$T/rec" --record-only -p "$STARTED" -F 2999 -d 2
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

# Without a thread the names are read in between, with the same result.
case $BUILD in
*san) ;; # a sanitizer has its own
*)
	without_threads "$PROFCPU" flamegraph "$T/rec/perf.data" >"$T/out.alone" 2>"$T/err" || fail "flamegraph gave $?: $(cat "$T/err")"
	grep -q 'no thread for you' "$T/err" || fail "no thread was asked for"
	cmp "$T/out.1" "$T/out.alone" || fail "without a thread there is something else"
	;;
esac

# Messages and pictures of the first run, and of a run from the names that it kept.
for i in first second; do
	"$PROFCPU" postprocess "$T/rec" >"$T/$i.said" 2>&1 || fail "the $i postprocess gave $?: $(cat "$T/$i.said")"
	for f in flamegraph.svg folded_stacks.out perf_script.out; do
		mv "$T/rec/$f" "$T/$i.$f"
		cmp "$T/first.$f" "$T/$i.$f" || fail "$f is something else from the names that were kept"
	done
done
grep -A 4 '^hottest' "$T/first.said" >"$T/first.hottest"
grep -A 4 '^hottest' "$T/second.said" | cmp "$T/first.hottest" - || fail "the hottest functions are said in another order"
