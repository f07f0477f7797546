#!/usr/bin/env bash
# Who ended waits: the thread and function that the program knows, over several of them, also from within a PID namespace; and what is left
# where wakings cannot be recorded.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf unshare
need_root
need_sampling
need_release
need_mounts
[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
[ -r /sys/kernel/tracing/events/sched/sched_waking/id ] || skip "needs tracefs at /sys/kernel/tracing"

WAITS=$BUILD/helpers/waits
FUNCTIONS="sleep lock pipe futex chain fault cpu"
"$WAITS" fault 0.1 >/dev/null 2>&1 || FUNCTIONS="sleep lock pipe futex chain cpu" # no userfaultfd

# DIR [COMMAND...]: records, by that command, and holds the wakers against what the program says
wakers_are_right() {
	local dir=$1 all chain
	shift
	# shellcheck disable=SC2086 # several words
	"$@" "$PROFCPU" collect --off-cpu --max-overhead 100 -o "$dir" -- "$WAITS" $FUNCTIONS 3 >said 2>err || fail "$(cat err)"
	grep -E '^wait_[a-z]+ ' said >answers
	"$BUILD/helpers/waits_check" time 2 answers "$dir/offcpu.folded" "$dir/wakeup.folded" || fail "other wakers, or times, than the program knows"
	all=$(weight_of "$dir/wakeup.folded" '^[^-]*;wait_chain;[^-]*;--;')
	chain=$(weight_of "$dir/wakeup.folded" ';wait_chain;[^-]*;--;[^-]*;wake_chain;relay_chain;[^-]*;waits;--;[^-]*;wake_relay;end_chain;')
	awk -v got="$chain" -v all="$all" 'BEGIN { exit !(all > 2e6 && got >= 0.99 * all) }' || fail "of $all us of wait_chain $chain have both that woke"
	grep -Eq 'ended it (9[89]\.[0-9]*|100\.00) % have a known waker' said || fail "the report: $(grep off-CPU said)"
	grep -q '"known_waker_ns": [1-9]' "$dir/report.json" || fail "nothing of wakers in report.json"
	grep -q '"interrupt_ns": [1-9]' "$dir/report.json" || fail "nothing of interrupts in report.json"
}

echo "each wait has its waker"
wakers_are_right rec
grep -q '>Wakeups<' rec/wakeup.svg || fail "wakeup.svg has another title"
grep -q 'wakeup\|wake_lock;.*;waits;--' rec/folded_stacks.out rec/offcpu.folded rec/perf_script.out && fail "wakers in other outputs"
# A timer's interrupt is nobody's, whoever ran when it came.
all=$(weight_of rec/wakeup.folded ';wait_sleep;[^-]*;--;')
timer=$(weight_of rec/wakeup.folded ';wait_sleep;[^-]*;--;[^-]*interrupt;[[]interrupt[]] ?$')
awk -v got="$timer" -v all="$all" 'BEGIN { exit !(all > 2e6 && got >= 0.99 * all) }' || fail "of $all us of wait_sleep $timer are the timer's: $(grep wait_sleep rec/wakeup.folded)"

echo "in perf"
perf script -i rec/perf.data -F comm,tid,time,period,event,ip,sym >script 2>perf.err || fail "perf script: $(cat perf.err)"
grep -qi 'order\|invalid\|unknown' perf.err && fail "perf script says: $(cat perf.err)"
grep -q 'offcpu-waker:' script || fail "perf shows no wakers"
[ "$(grep -c 'offcpu-waker:' script)" -lt 1000 ] || fail "wakers are not written once each: $(grep -c 'offcpu-waker:' script)"
perf report -i rec/perf.data --stdio >/dev/null 2>perf.err || fail "perf report: $(cat perf.err)"

echo "elsewhere"
tar -tzf rec/prof.tar.gz | grep -q 'wakeup.folded' || fail "not in the archive"
"$PROFCPU" postprocess -q --offline -o away rec/prof.tar.gz || fail "postprocess"
for file in wakeup.folded wakeup.svg offcpu.folded; do
	cmp "rec/$file" "away/$file" || fail "$file is another one"
done
"$PROFCPU" fold --offline --event-filter wakeup -o folded away || fail "fold"
awk -v a="$(weight_of folded)" -v b="$(weight_of rec/wakeup.folded)" 'BEGIN { exit !(a > 0 && a / 1000 - b < 100 && b - a / 1000 < 100) }' ||
	fail "fold has $(weight_of folded) ns, wakeup.folded $(weight_of rec/wakeup.folded) us"

echo "from within a PID namespace"
wakers_are_right inside unshare --pid --fork --mount-proc

echo "of a process whose waker is none of the targets"
mkfifo pipe
start waker sh -c 'exec 3>pipe; while sleep 0.05; do echo x >&3; done'
start sleeper sh -c 'while read -r line; do :; done <pipe'
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -d 2 -p "$STARTED" -o strange || fail "collect -p"
awk -v us="$(weight_of strange/wakeup.folded '^sh;.*read[^-]*;--;.*_write;.*;__libc_start_call_main;.*;sh ?$')" 'BEGIN { exit !(us > 1.5e6) }' ||
	fail "the waker is not named: $(cat strange/wakeup.folded)"
stop "$STARTED"

echo "where wakings cannot be recorded"
unshare --mount sh -c 'mount -t tmpfs none /sys/kernel/tracing && { [ ! -d /sys/kernel/debug/tracing ] || mount -t tmpfs none /sys/kernel/debug; } && exec "$@"' - \
	"$PROFCPU" collect --off-cpu --max-overhead 100 -o without -- "$WAITS" pipe 1 >said 2>err || fail "$(cat err)"
[ "$(grep -c 'who ends waits is not known' err)" = 1 ] || fail "not said once: $(cat err)"
grep -q 'who ends waits is not known: .*tracefs is not mounted; mount -t tracefs' err || fail "not said what to do: $(cat err)"
grep -q 'known waker' said && fail "$(grep off-CPU said)"
grep -q '^profcpu: without has no wakeup.folded .*of no wait' err || fail "not said: $(cat err)"
[ -e without/wakeup.folded ] && fail "wakeup.folded without wakers"
at_least "$(weight_of without/offcpu.folded ';wait_pipe;')" 900000 || fail "the waits are not there: $(cat without/offcpu.folded)"
exit 0
