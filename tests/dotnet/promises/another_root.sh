# shellcheck shell=bash
# A recording contains the names of a .NET service: in a root without .NET and without the service it gives the same outputs.

# The recording has names of JIT-compiled and of precompiled code.
promise_has_names() {
	grep -q 'WebApi.Cpu.IsPrime(int32)' <("$PROFCPU" fold "$REC") || fail "no name of JIT-compiled code"
	grep -q '\[PreJIT\]' "$REC/perf_script.out" || fail "no name of precompiled code"
}

promise_recorded() { [ -s "$REC/perf.data" ] || fail "nothing was recorded"; }

# After the end of the process, prof.tar.gz in another root gives the same outputs and table of names. Folded stacks are the
# same with each option, including precompiled code, inlined functions and lines.
promise_same_there() {
	local file options way=${REC##*/}
	need tar ldd
	need_root
	need_mounts
	program_ends
	another_root
	rm -rf "$R/tmp/$way"
	cp "$REC/prof.tar.gz" "$R/tmp/$way.tar.gz"
	there postprocess --inlines --lines -o "/tmp/$way" "/tmp/$way.tar.gz" >there.log 2>&1 || fail "postprocess gave $?: $(cat there.log)"
	for file in folded_stacks.out perf_script.out flamegraph.svg; do
		cmp "$REC/$file" "$R/tmp/$way/$file" || fail "$file differs in the other root"
	done
	# The same table of names, which counts every frame.
	"$PROFCPU" postprocess --inlines --lines "$REC" >here.log 2>&1 || fail "postprocess gave $?: $(cat here.log)"
	# Remedies have the path of the recording.
	sed -i "s|$REC|DIR|g" here.log && sed -i "s|/tmp/$way|DIR|g" there.log
	diff <(grep -A 20 '^names' here.log | grep -v '^written') <(grep -A 20 '^names' there.log | grep -v '^written') ||
		fail "the counts of names differ in the other root"
	for options in '' --raw-names --inlines '--inlines --lines'; do
		# shellcheck disable=SC2086 # several options, or none
		"$PROFCPU" fold $options "$REC" >here || fail "fold $options here gave $?"
		# shellcheck disable=SC2086
		there fold $options "/tmp/$way.tar.gz" >there || fail "fold $options there gave $?"
		cmp here there || fail "fold $options differs in the other root"
	done
	grep -q 'WebApi.Cpu.IsPrime(int32)' there || fail "no name of JIT-compiled code"
	grep -q '\[PreJIT\]' "$R/tmp/$way/perf_script.out" || fail "no name of precompiled code"
}

# After the process has ended, a recording without names gets the same names in place, from its perf.data alone, and in another
# directory.
promise_same_later() {
	local other
	program_ends
	"$PROFCPU" postprocess -q -o moved "$REC" || fail "postprocess -o gave $?"
	"$PROFCPU" postprocess -q -o taken "$REC/perf.data" || fail "postprocess of perf.data gave $?"
	"$PROFCPU" postprocess -q "$REC" || fail "postprocess gave $?"
	"$PROFCPU" fold "$REC" >here || fail "fold gave $?"
	grep -q 'WebApi.Cpu.IsPrime(int32)' here || fail "no name of JIT-compiled code in a recording of --record-only"
	for other in moved taken "$REC/perf.data"; do
		"$PROFCPU" fold "$other" | cmp here - || fail "names of $other differ"
	done
}
