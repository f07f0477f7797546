#!/usr/bin/env bash
# Sampling begins last: with 2,000 processes no sample is older than the recording's start, none is lost, and every
# process is named. A command is recorded from its first instruction.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_tracefs
need_sampling
W=$BUILD/helpers/workload
PROCESSES=2000

# record DIR ARG...
record() {
	local dir=$1
	shift
	"$PROFCPU" collect --record-only --jit-names=none -o "$dir" "$@" >out 2>err &
	recorder=$!
	wait "$recorder" || fail "collect $*: $(cat out err)"
	# shellcheck disable=SC2094 # it only names the file
	perf script -i "$dir/perf.data" --ns -F pid,time,event,ip,sym >script 2>/dev/null
	start_ns=$(sed -n 's/.*"start_monotonic_ns": \([0-9]*\),$/\1/p' "$dir/manifest.json")
	[ -n "$start_ns" ] || fail "no start in the manifest: $(cat "$dir/manifest.json")"
}
# Times of the samples in nanoseconds.
times() { sed -n 's/^ *[0-9]* *\([0-9]*\)\.\([0-9]\{9\}\): .*/\1\2/p' script; }
begins_last() { # DIR; 1: records were lost
	local early all lost
	all=$(times | wc -l)
	at_least "$all" 100 || fail "$1: $all samples: $(cat err)"
	early=$(times | awk -v start="$start_ns" '$1 + 0 < start + 0' | wc -l)
	echo "$1: $all samples, $early before the start"
	[ "$early" = 0 ] || fail "$1: $early samples before the start"
	! awk -v pid="$recorder" '$2 ~ /:$/ { ours = $1 == pid } ours' script | grep -q ' sampler_synthesize$' || fail "$1: the start of profcpu itself was sampled"
	# Within half a second of the start, because later losses have other reasons. Switches have rings of their own.
	grep -q 'offcpu-time' script && return
	lost=$("$BUILD/helpers/perfdata_dump" dump "$1/perf.data" | awk -v until="$((start_ns + 500000000))" '$NF == "LOST" && $1 + 0 < until + 0' | wc -l)
	[ "$lost" = 0 ] || "$BUILD/helpers/perfdata_dump" walk "$1/perf.data" >lost
	[ "$lost" = 0 ]
}
# Other programs may fill the rings for a moment, so losses count if they come three times.
record_begins_last() { # ARG...
	for _ in 1 2 3; do
		rm -rf rec
		record rec -F 1999 -d 1 "$@"
		begins_last rec && return
	done
	fail "$*: records were lost: $(cat lost)"
}

start processes "$W" processes "$PROCESSES" 300
wait_for 90 grep -q ready "$T/processes.log" || skip "$PROCESSES processes cannot be started here: $(cat "$T/processes.log")"
for target in -a "-p $STARTED"; do
	for more in "" --off-cpu; do
		# shellcheck disable=SC2086 # words
		record_begins_last $more $target
		named=$(perf script -i rec/perf.data --show-task-events 2>/dev/null | grep -c 'PERF_RECORD_COMM: workload:')
		[ "$named" -ge "$PROCESSES" ] || fail "$target $more: $named of $PROCESSES processes have a name"
	done
done
stop "$STARTED"

echo "threads, with events of their own"
start threads "$W" threads 100 300
wait_for 20 grep -q ready "$T/threads.log" || fail "the threads did not start"
record_begins_last -p "$STARTED"
stop "$STARTED"

echo "a command from its first instruction"
# The first system call of a dynamic program is brk, in the loader.
for more in "" -a --off-cpu; do
	# shellcheck disable=SC2086 # words
	rm -rf rec
	record rec -e syscalls:sys_enter_brk $more -- /bin/true
	grep -q 'sys_enter_brk' script || fail "collect $more: the first system call is missing: $(cat script err)"
done
exit 0
