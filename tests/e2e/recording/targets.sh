#!/usr/bin/env bash
# record_run records processes, threads, children, commands and the machine; perf reads the results.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_sampling
R=$BUILD/helpers/record_main
W=$BUILD/helpers/workload

# run DIR ARG...: records; its output is in $T/out.
run() {
	local dir=$1
	shift
	"$R" -q -o "$dir" "$@" >"$T/out" 2>"$T/err" || {
		cat "$T/out" "$T/err"
		fail "record $* gave $?"
	}
}
value() { sed -n "s/^$1 //p" "$T/out"; }
# Checks that perf opens it without complaints; writes the leaf of each sample to $T/leaves.
leaves() { # DIR
	perf_agrees "$T/script" script -i "$1/perf.data" -F comm,pid,ip,sym
	perf_agrees /dev/null report -i "$1/perf.data" --stdio -g none
	perf_agrees /dev/null report -i "$1/perf.data" --header-only
	awk 'NF == 2 && $2 ~ /^[0-9]+$/ { leaf = 1; next } leaf { print $2; leaf = 0 }' "$T/script" >"$T/leaves"
}
count() { grep -cx "$1" "$T/leaves"; }
# Time that a hypervisor took from all CPUs so far. It is not CPU time of the process, but the sampling clock includes
# it.
stolen_ms() { awk '/^cpu / { print $9 * 10 }' /proc/stat; }
# run_measured DIR PID ARG...: like run, until the process has used 1 s of CPU time. Its use while everything was
# recorded is in $CPU_MS. $CPU_MS_MOST also includes begin, end and stolen time.
run_measured() {
	local dir=$1 pid=$2 before outer recorder
	shift 2
	outer=$(($(cpu_ms "$pid") + $(stolen_ms)))
	"$R" -q -o "$dir" -p "$pid" -F 999 "$@" >"$T/out" 2>"$T/err" &
	recorder=$!
	wait_for 60 test -s "$dir/perf.data" || fail "record $*: did not begin: $(cat "$T/err")"
	before=$(cpu_ms "$pid")
	wait_for_cpu "$pid" 1000
	CPU_MS=$(($(cpu_ms "$pid") - before))
	kill -INT "$recorder"
	wait "$recorder" || fail "record $* gave $?: $(cat "$T/out" "$T/err")"
	CPU_MS_MOST=$(($(cpu_ms "$pid") + $(stolen_ms) - outer))
}
# At 999 Hz the number of samples must match the CPU time within a tick. Most must be in the symbol; the rest is in fork
# and the like.
all_of() { # SYMBOL
	local all n
	all=$(wc -l <"$T/leaves")
	n=$(count "$1")
	echo "$all samples, $n of $1, $(value lost) lost, in $CPU_MS to $CPU_MS_MOST ms of CPU"
	at_least "$n" $((all / 2)) || fail "$n of $all samples in $1"
	[ "$all" -le $((CPU_MS_MOST * 110 / 100 + 30)) ] && at_least "$all" $((CPU_MS * 85 / 100 - 30)) && [ "$(value lost)" = 0 ]
}
# measure SYMBOL DIR PID ARG...: all_of for the recording of run_measured. Repeats it if samples are missing or too
# many. A CPU that goes offline (snapshot of a virtual machine) loses its events, and stolen time is reported late.
measure() {
	local symbol=$1
	shift
	for _ in 1 2 3; do
		rm -rf "$1"
		run_measured "$@"
		leaves "$1"
		all_of "$symbol" && return
	done
	fail "three times too few or too many samples"
}
launch() { # KIND ARG...
	start "$1" "$W" "$@"
	wait_for 20 grep -q ready "$T/$1.log" || fail "the workload $1 did not start"
}

echo "one process by its threads"
launch threads 3 120
measure burn_thread threads "$STARTED"
[ "$(value mode)" = threads ] && [ "$(value threads)" = 4 ] || fail "not one event for each of 4 threads: $(cat "$T/out")"
stop "$STARTED"

echo "new threads while recording: each is recorded once"
for mode in threads cpus; do
	launch churn 120
	measure burn_short "churn-$mode" "$STARTED" -m "$mode"
	stop "$STARTED"
done

echo "new children while recording"
for mode in threads cpus; do
	launch children 120
	measure burn_child "children-$mode" "$STARTED" -m "$mode"
	stop "$STARTED"
done

echo "whole CPUs, filtered: nothing of other processes"
launch threads 3 120
target=$STARTED
start other "$W" deep 5 120
measure burn_thread filtered "$target" -m cpus
[ "$(count burn_deep)" = 0 ] || fail "samples of another process"
[ "$(awk 'NF == 2 && $2 ~ /^[0-9]+$/ { print $2 }' "$T/script" | sort -u)" = "$target" ] || fail "samples of other processes: $(wc -l <"$T/script") lines"
stop "$STARTED"
stop "$target"

echo "children that exist before the recording"
launch processes 3 120
child=$(awk '{ print $1 }' "/proc/$STARTED/task/$STARTED/children")
run family -p "$STARTED" -F 99 -d 0.3
perf script -i family/perf.data --show-task-events 2>/dev/null | grep -q "PERF_RECORD_COMM: workload:$child/" ||
	fail "no COMM of the child $child"
stop "$STARTED"

echo "a target that executes another program"
launch exec 2
run exec -p "$STARTED" -F 999 -d 120
[ "$(value end)" = target ] || fail "did not end with its target: $(cat "$T/out")"
leaves exec
at_least "$(count burn_before)" 20 || fail "$(count burn_before) samples before exec"
at_least "$(count burn_after)" 100 || fail "$(count burn_after) samples after exec"

echo "a command from its first instruction"
run command -F 4999 -- "$W" deep 8 0.3
[ "$(value end)" = target ] && [ "$(value status)" = 0 ] || fail "command: $(cat "$T/out")"
leaves command
at_least "$(count burn_deep)" 100 || fail "$(count burn_deep) samples of burn_deep"
perf script -i command/perf.data --show-task-events 2>/dev/null | grep 'COMM exec: workload' >/dev/null || fail "no COMM of its exec"
perf script -i command/perf.data --show-mmap-events 2>/dev/null | grep 'MMAP2.*/workload$' >/dev/null || fail "no MMAP2 of its image"

echo "a command that ends after a millisecond"
run brief -F 4999 -- "$W" brief
[ "$(value end)" = target ] && [ "$(value status)" = 768 ] || fail "brief: $(cat "$T/out")"
leaves brief

echo "the machine, while a command runs"
run machine -a -F 999 -- "$W" deep 8 1
leaves machine
# Names are not perf's: it may have left its chroot by then.
"$PROFCPU" fold machine >folded 2>"$T/err" || fail "fold: $(cat "$T/err")"
burnt_ms=$(($(weight_of folded ';burn_deep') / 1000000))
[ "$burnt_ms" -ge 500 ] || fail "$burnt_ms ms of burn_deep, which burns a second"
perf script -i machine/perf.data --show-mmap-events 2>/dev/null | grep 'PERF_RECORD_MMAP.*kernel.kallsyms' >/dev/null ||
	fail "no map of the kernel"

echo "build ids come with the maps"
perf script -i command/perf.data --show-mmap-events 2>/dev/null | grep -E 'MMAP2.*<[0-9a-f]{40}>.*libc' >/dev/null ||
	echo "(this kernel does not write them)"
exit 0
