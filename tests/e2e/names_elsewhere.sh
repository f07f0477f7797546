#!/usr/bin/env bash
# What names a .NET service is in the recording: prof.tar.gz gives the same bytes in a root without .NET and without the service, in
# each way in which the names of JIT-compiled code are taken, with its precompiled code, inlined functions and lines.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need tar ldd
need_root
need_dotnet web-api
need_sampling
need_mounts

start_web_api
start_load 60 /cpu /wait
for way in memory perfmap rundown; do
	record "$way" -p "$API_PID" -F 499 -d 2 --jit-names "$way" --inlines --lines
done
record only -p "$API_PID" -F 499 -d 2 --record-only
stop "$LOAD_PID"
stop "$API_PID"

another_root
for way in memory perfmap rundown; do
	cp "$way/prof.tar.gz" "$R/tmp/$way.tar.gz"
	there postprocess --inlines --lines -o "/tmp/$way" "/tmp/$way.tar.gz" >there.log 2>&1 || fail "postprocess of $way gave $?: $(cat there.log)"
	for file in folded_stacks.out perf_script.out flamegraph.svg; do
		cmp "$way/$file" "$R/tmp/$way/$file" || fail "$file of $way is another one elsewhere"
	done
	# The same table of names, which counts every frame.
	"$PROFCPU" postprocess --inlines --lines "$way" >here.log 2>&1 || fail "postprocess of $way gave $?: $(cat here.log)"
	diff <(grep -A 20 '^names' here.log | grep -v '^written') <(grep -A 20 '^names' there.log | grep -v '^written') ||
		fail "the names of $way are counted otherwise elsewhere"
	for options in '' --raw-names --inlines '--inlines --lines'; do
		# shellcheck disable=SC2086 # several options, or none
		"$PROFCPU" fold --names full $options "$way" >here || fail "fold $options here gave $?"
		# shellcheck disable=SC2086
		there fold --names full $options "/tmp/$way.tar.gz" >there || fail "fold $options there gave $?"
		cmp here there || fail "fold $options of $way is another one elsewhere"
	done
	grep -q 'WebApi.Cpu.IsPrime(int32)' there || fail "no name of JIT-compiled code in $way"
	grep -q '\[PreJIT\]' "$R/tmp/$way/perf_script.out" || fail "no name of precompiled code in $way"
done

# What is named by its perf.data, or becomes a recording elsewhere before it had its names, has the same.
"$PROFCPU" postprocess -q -o moved only || fail "postprocess -o gave $?"
"$PROFCPU" postprocess -q -o taken only/perf.data || fail "postprocess of perf.data gave $?"
"$PROFCPU" postprocess -q only || fail "postprocess gave $?"
"$PROFCPU" fold --names full only >here || fail "fold gave $?"
grep -q 'WebApi.Cpu.IsPrime(int32)' here || fail "no name of JIT-compiled code in what was only recorded"
for other in moved taken only/perf.data; do
	"$PROFCPU" fold --names full "$other" | cmp here - || fail "$other has other names"
done
