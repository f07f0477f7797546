#!/usr/bin/env bash
# Wakers of waits: the thread and function that the program reports, over several waits, also from within a PID
# namespace. Without recorded wakings the other outputs are complete.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf unshare
need_root
need_sampling
need_release
need_mounts
need_tracefs

WAITS=$BUILD/helpers/waits
FUNCTIONS="sleep lock pipe futex chain fault cpu"
"$WAITS" fault 0.1 >/dev/null 2>&1 || FUNCTIONS="sleep lock pipe futex chain cpu" # no userfaultfd

# wakers_are_right DIR [COMMAND...]: records with that command and compares the wakers with the program's own.
wakers_are_right() {
	local dir=$1 all chain unwoken
	shift
	# shellcheck disable=SC2086 # several words
	record_waits "$dir" "$@" "${FIRST[@]}" "$PROFCPU" collect --off-cpu --max-overhead 100 -o "$dir" -- "$WAITS" $FUNCTIONS 3
	grep -E '^wait_[a-z]+ ' out >answers
	# Time without a waker by the report: less than two percent.
	unwoken=$((($(report_number "$dir" ended_ns) - $(report_number "$dir" known_waker_ns)) / 1000))
	"$BUILD/helpers/waits_check" time 1 answers "$dir/offcpu.folded" "$dir/wakeup.folded" "$unwoken" || fail "wakers or times differ from the program's"
	all=$(weight_of "$dir/wakeup.folded" '^[^-]*;wait_chain;[^-]*;--;')
	chain=$(weight_of "$dir/wakeup.folded" ';wait_chain;[^-]*;--;[^-]*;wake_chain;relay_chain;[^-]*;waits;--;[^-]*;wake_relay;end_chain;')
	awk -v got="$chain" -v all="$all" 'BEGIN { exit !(all > 0 && got >= 0.99 * all) }' || fail "only $chain of $all us of wait_chain have both wakers"
	grep -Eq 'wakers known for (9[89]\.[0-9]*|>99.99|100\.00) % of ' out || fail "the report has fewer known wakers: $(grep wakers out)"
	grep -q '"known_waker_ns": [1-9]' "$dir/report.json" || fail "report.json has no wakers"
	grep -q '"interrupt_ns": [1-9]' "$dir/report.json" || fail "report.json has no interrupts"
}

echo "each wait has its waker"
wakers_are_right rec
grep -q '>Wakeups: ' rec/wakeup.svg || fail "wakeup.svg has another title"
grep -q 'wakeup\|wake_lock;.*;waits;--' rec/folded_stacks.out rec/offcpu.folded rec/perf_script.out && fail "wakers in other outputs"
# A timer's interrupt has no waker, whichever thread was running.
all=$(weight_of rec/wakeup.folded ';wait_sleep;[^-]*;--;')
timer=$(weight_of rec/wakeup.folded ';wait_sleep;[^-]*;--;[^-]*interrupt;[[]interrupt[]] ?$')
awk -v got="$timer" -v all="$all" 'BEGIN { exit !(all > 0 && got >= 0.99 * all) }' || fail "only $timer of $all us of wait_sleep have the timer as waker: $(grep wait_sleep rec/wakeup.folded)"

echo "perf reads the wakers"
perf script -i rec/perf.data -F comm,tid,time,period,event,ip,sym >script 2>perf.err || fail "perf script: $(cat perf.err)"
grep -qi 'order\|invalid\|unknown' perf.err && fail "perf script printed: $(cat perf.err)"
grep -q 'offcpu-waker:' script || fail "perf shows no wakers"
[ "$(grep -c 'offcpu-waker:' script)" -lt 1000 ] || fail "wakers are written more than once: $(grep -c 'offcpu-waker:' script)"
perf report -i rec/perf.data --stdio >/dev/null 2>perf.err || fail "perf report: $(cat perf.err)"

echo "the archive has the same wakers"
tar -tzf rec/prof.tar.gz | grep -q 'wakeup.folded' || fail "not in the archive"
"$PROFCPU" postprocess -q --offline -o away rec/prof.tar.gz || fail "postprocess"
for file in wakeup.folded wakeup.svg offcpu.folded; do
	cmp "rec/$file" "away/$file" || fail "$file of the archive differs"
done
"$PROFCPU" fold --offline --event-filter wakeup -o folded away || fail "fold"
awk -v a="$(weight_of folded)" -v b="$(weight_of rec/wakeup.folded)" 'BEGIN { exit !(a > 0 && a / 1000 - b < 100 && b - a / 1000 < 100) }' ||
	fail "fold has $(weight_of folded) ns, wakeup.folded $(weight_of rec/wakeup.folded) us"

echo "wakers from within a PID namespace"
wakers_are_right inside unshare --pid --fork --mount-proc

echo "a waker outside the targets"
mkfifo pipe
start waker sh -c 'exec 3>pipe; while sleep 0.05; do echo x >&3; done'
start sleeper sh -c 'while read -r line; do :; done <pipe'
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -d 2 -p "$STARTED" -o strange || fail "collect -p"
all=$(weight_of strange/wakeup.folded '^sh;.*read[^-]*;--;')
named=$(weight_of strange/wakeup.folded '^sh;.*read[^-]*;--;.*_write;.*;__libc_start_call_main;.*;sh ?$')
awk -v got="$named" -v all="$all" 'BEGIN { exit !(all > 5e5 && got >= 0.9 * all) }' ||
	fail "the waker is not named: $(cat strange/wakeup.folded)"
stop "$STARTED"

echo "waits without tracefs have no wakers"
unshare --mount sh -c 'mount -t tmpfs none /sys/kernel/tracing && { [ ! -d /sys/kernel/debug/tracing ] || mount -t tmpfs none /sys/kernel/debug; } && exec "$@"' - \
	"$PROFCPU" collect --off-cpu --max-overhead 100 -o without -- "$WAITS" pipe 1 >out 2>err || fail "$(cat err)"
[ "$(grep -c 'wakers are not recorded' err)" = 1 ] || fail "the reason is not reported once: $(cat err)"
grep -q 'wakers are not recorded: .*tracefs is not mounted; mount -t tracefs' err || fail "no remedy: $(cat err)"
grep -q 'wakers known' out && fail "the report has known wakers: $(grep off-CPU out)"
grep -q '^profcpu: without: no wakeup\.\*, because no waker is known' err || fail "the missing outputs are not reported: $(cat err)"
[ -e without/wakeup.folded ] && fail "wakeup.folded without wakers"
grep '^wait_' out >answers
"$BUILD/helpers/waits_check" time 1 answers without/offcpu.folded || fail "waits are missing: $(cat without/offcpu.folded)"
exit 0
