#!/usr/bin/env bash
# Exit statuses: without samples, of a recorded command, after Ctrl-C.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling

# gives STATUS PATTERN COMMAND...: checks the exit status, and that one line on stderr matches; stdout is in out.
gives() {
	local want=$1 pattern=$2 status=0
	shift 2
	timeout -k 5 60 "$@" >out 2>err </dev/null || status=$?
	[ "$status" = "$want" ] || fail "$*: exit $status, not $want: $(cat err)"
	[ -z "$pattern" ] || [ "$(grep -cE "$pattern" err)" = 1 ] || fail "$*: $(cat err)"
}

# A recording without samples is valid: the target did not run. A warning reports it, and the status is 0, as with perf
# record and stackcollapse-perf.pl. Only drawing fails, as with flamegraph.pl.
start sleeper sleep 60
gives 0 'warning: .*: no samples; record longer' "$PROFCPU" collect -pid "$STARTED" -frequency 99 -duration 0.2 -output idle
gives 0 'warning: .*: no samples; record longer' "$PROFCPU" postprocess -dir idle
gives 0 'warning: .*: no samples; record longer' "$PROFCPU" postprocess idle/perf.data -o again
gives 0 'warning: idle has no samples' "$PROFCPU" fold idle
[ ! -s out ] || fail "folded an event without samples"
gives 1 "error: idle: no samples of the event 'cycles'; it has no samples of any event" "$PROFCPU" fold --event-filter=cycles idle
gives 1 'error: no stacks in the input' "$PROFCPU" flamegraph idle
grep -q 'no samples' out || fail "the picture lacks the words 'no samples'"
for dir in idle again; do
	grep -q 'no samples' $dir/flamegraph.svg || fail "$dir/flamegraph.svg lacks the words 'no samples'"
	[ -e $dir/folded_stacks.out ] || fail "no $dir/folded_stacks.out"
	[ ! -s $dir/folded_stacks.out ] || fail "$dir/folded_stacks.out is not empty"
	[ -e $dir/perf_script.out ] || fail "no $dir/perf_script.out"
done
printf '# ========\n# captured on : today\n#\n' >comments
gives 0 'warning: comments has no samples' "$PROFCPU" fold comments
gives 1 'error: ' "$PROFCPU" flamegraph comments
gives 0 'warning: .*: no samples; record longer' "$PROFCPU" postprocess comments -o from-comments
# No sample of the selected event.
gives 1 "error: .*/cpp.txt: no samples of the event 'cycles'; choose from 'cpu-clock:[a-zA-Z]*'$" "$PROFCPU" fold --event-filter cycles "$TESTS/golden/fold/cpp.txt"
[ ! -s out ] || fail "folded an event without samples"
gives 1 "error: .*/cpp.txt: no samples of the event 'cycles'; choose from 'cpu-clock:[a-zA-Z]*'$" "$PROFCPU" flamegraph --event cycles "$TESTS/golden/fold/cpp.txt"
# Text that ends within a sample, as after a broken pipe: the samples before it are used.
sed '$d' "$TESTS/golden/fold/cpp.txt" >whole
printf '\n' >>whole
gives 0 '' "$PROFCPU" fold whole
for cut in 20 3; do
	head -c -$cut whole >cut.txt
	for command in fold flamegraph postprocess; do
		gives 1 'warning: cut.txt: cut inside a sample; [0-9]* samples before it were read' \
			"$PROFCPU" $command cut.txt
		[ -s out ] || fail "$command of a cut text: no output"
	done
done
rm -r profilings
# Empty input is an error.
: >nothing
for command in fold flamegraph postprocess; do
	gives 1 'error: ' "$PROFCPU" $command nothing
	gives 1 'error: ' "$PROFCPU" $command -
done

# The status of a finished command is passed on, as with perf record.
for want in 0 1 7; do
	gives $want '' "$PROFCPU" collect -q -o status -- sh -c "exit $want"
	[ -s status/flamegraph.svg ] || fail "a command with status $want: no picture"
done
gives 137 'signal 9 ended the command' "$PROFCPU" collect -q -o status -- sh -c 'kill -KILL $$'
gives 0 '' "$PROFCPU" collect -q -d 0.2 -o status -- sh -c 'sleep 1; exit 7'
gives 127 'error: cannot execute no-such-command: No such file' "$PROFCPU" collect -q -o none -- no-such-command
gives 127 'error: cannot execute \./no/such' "$PROFCPU" collect -q -a -o none -- ./no/such
gives 126 'error: cannot execute \./err: Permission denied' "$PROFCPU" collect -q -o none -- ./err
gives 126 'error: cannot execute /: Permission denied' "$PROFCPU" collect -q -o none -- /
[ ! -e none ] || fail "a command that cannot be executed leaves files"
# With -p the command only limits the time of the recording and is not recorded itself.
start_shares 60
# shellcheck disable=SC2016 # for that shell
gives 3 '' "$PROFCPU" collect -q -F 999 --pid "$SHARES_PID" -o with -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3'
stop "$SHARES_PID"
grep -q '^shares;' with/folded_stacks.out || fail "-p beside a command: the process is not recorded"
grep -q '^sh;' with/folded_stacks.out && fail "-p beside a command: the command is recorded"

# A reader of the report that leaves is no failure; a full device is one. Filters end by SIGPIPE.
without_reader() {
	{
		"$@" 2>err
		echo $? >status.out
	} | true
	cat status.out
}
for _ in 1 2 3; do
	[ "$(without_reader "$PROFCPU" collect -d 0.2 -o deaf -- sleep 0.1)" = 0 ] || fail "collect without a reader: exit $(cat status.out): $(cat err)"
	[ -s deaf/prof.tar.gz ] || fail "collect without a reader: no archive"
	[ "$(without_reader "$PROFCPU" postprocess deaf)" = 0 ] || fail "postprocess without a reader: exit $(cat status.out): $(cat err)"
	grep -i 'stdout\|pipe' err && fail "a missing reader is reported"
	"$PROFCPU" collect -F 999 -o deaf -- sleep 0.1 2>err | head -n 1 >first
	[ "${PIPESTATUS[0]}" = 0 ] || fail "collect | head -n 1 failed: $(cat err)"
done
[ "$(without_reader "$PROFCPU" ps)" = 141 ] || fail "ps without a reader: exit $(cat status.out)"
gives 1 'cannot (write to stdout|print the report)' sh -c "'$PROFCPU' postprocess deaf >/dev/full"

# Only enough descriptors for the events: the error comes before the recording, and the suggested limit suffices.
start_shares 60
"$BUILD/helpers/record_main" -q -p "$SHARES_PID" -d 0.1 -o few >out 2>err || fail "$(cat err)"
few=$(($(sed -n 's/^descriptors //p' out) + 16))
rm -r few
(ulimit -n $few && gives 1 "error: cannot record: the limit of $few open files .* or more \\(ulimit -n\\)" \
	"$PROFCPU" collect -q -p "$SHARES_PID" -d 20 -o few) || exit 1
[ ! -e few ] || fail "a recording without descriptors leaves files"
enough=$(sed -n 's/.*raise it to \([0-9]*\) or more.*/\1/p' err)
(ulimit -n "$enough" && gives 0 '' "$PROFCPU" collect -q -p "$SHARES_PID" -F 999 -d 0.3 -o few) || exit 1
at_least "$(share_of few/folded_stacks.out ';work;')" 80 || fail "with the suggested limit names are missing"
stop "$SHARES_PID"

# Too little address space for a thread: one line tells what to raise. Sanitizers need far more.
if is_release; then
	kib=45000
	until grep -q 'error: cannot start a thread:' err; do
		kib=$((kib + 2500)) status=0
		[ "$kib" -lt 1000000 ] || fail "no limit of address space prevents a thread: $(cat err)"
		rm -rf small
		(ulimit -v "$kib" && exec "$PROFCPU" collect -q -a -d 0.1 -o small) >out 2>err </dev/null || status=$?
	done
	[ "$status" = 1 ] && grep -q 'cannot start a thread: .*; raise the limits of threads (ulimit -u, pids.max) and memory (ulimit -v)$' err ||
		fail "in $kib KiB: exit $status: $(cat err)"
	[ ! -e small ] || fail "a recording without threads leaves files: $(ls -A small)"
fi

# Ctrl-C reaches the command too, and the recording is saved.
for pause in 0 0.01 0.05 0.1 0.3; do
	rm -rf both
	setsid env --default-signal=INT "$PROFCPU" collect -q -F 999 -o both -- sleep 60 >out 2>err </dev/null &
	group=$!
	wait_for 20 test -s both/perf.data || fail "Ctrl-C: the recording did not start: $(cat err)"
	sleep $pause
	kill -INT -- -$group
	status=0
	wait $group || status=$?
	[ $status = 0 ] || fail "Ctrl-C: exit $status: $(cat err)"
	[ -s both/flamegraph.svg ] || fail "Ctrl-C: no picture"
done

# A second Ctrl-C ends the creation of outputs. Existing outputs are complete, and the others can be made later.
setsid env --default-signal=INT "$PROFCPU" collect -q -a --jit-names=none -F 4999 -o twice -d 60 >out 2>err </dev/null &
group=$!
wait_for 20 test -s twice/perf.data || fail "a second Ctrl-C: the recording did not start: $(cat err)"
sleep 1
kill -INT $group
wait_for 20 test -s twice/flamegraph.svg || fail "a second Ctrl-C: no picture: $(cat err)"
kill -INT $group
status=0
wait $group || status=$?
[ $status = 130 ] || [ $status = 0 ] || fail "a second Ctrl-C: exit $status: $(cat err)" # 0: it had finished
[ $status = 0 ] || [ "$(grep -c '^profcpu: the samples are in twice; run .profcpu postprocess twice. to make the outputs' err)" = 1 ] ||
	fail "a second Ctrl-C: does not list the missing outputs: $(cat err)"
tail -c 20 twice/flamegraph.svg | grep -q '</svg>' || fail "a second Ctrl-C: flamegraph.svg is cut"
gives 0 '' "$PROFCPU" postprocess -q twice
[ -s twice/prof.tar.gz ] || fail "a second Ctrl-C: postprocess made no prof.tar.gz"
