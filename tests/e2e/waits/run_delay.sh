#!/usr/bin/env bash
# With more busy threads than CPUs, each thread's time waiting for a CPU is that of the scheduler, in every mode.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_tracefs
need_sampling
need_release
need python3

THREADS=$((4 * $(nproc)))
HIDE=(unshare --mount sh -c 'umount /sys/kernel/tracing && exec "$@"' -)
# check NAME SLEEP_US COMMAND...: records the crowd with it.
check() {
	local name=$1 sleep=$2
	shift 2
	echo "$name"
	rm -rf rec
	"$@" collect --off-cpu -o rec "${OPTIONS[@]}" -- "$BUILD/helpers/crowd" "$THREADS" 4 "$sleep" >out 2>err || fail "$(cat err)"
	grep -E '^[0-9]+ [0-9]+ [0-9]+ [0-9]+$' out >counts
	[ "$(wc -l <counts)" = "$THREADS" ] || fail "the program printed: $(cat out)"
	python3 "$TESTS/e2e/waits/off_cpu_threads.py" delay rec counts || fail "$name: $(cat err)"
	# It is a frame of its own in the pictures.
	awk -v got="$(weight_of rec/wall.folded ';[[]waiting for a CPU[]] ?$')" '{ real += $3 / 1e3 } END { exit !(got > 0.98 * real && got < 1.02 * real) }' counts ||
		fail "$name: the frame has $(weight_of rec/wall.folded ';[[]waiting for a CPU[]] ?$') us"
	grep -q 'waiting for a CPU [0-9.]*%' rec/wall.svg || fail "$name: the legend of wall.svg lacks it"
}

OPTIONS=(--max-overhead 100)
check "with wakings" 1000 "$PROFCPU"
grep -q 'in windows' err && fail "windows: $(cat err)"
check "without wakings" 1000 "${HIDE[@]}" "$PROFCPU"
grep -q 'wakers are not recorded' err || fail "wakings: $(cat err)"
OPTIONS=(--max-overhead 1)
check "with wakings, in windows" 200 "$PROFCPU"
grep -q 'in windows' err || fail "no windows: $(cat err)"
check "without wakings, in windows" 200 "${HIDE[@]}" "$PROFCPU"
grep -q 'in windows' err || fail "no windows: $(cat err)"
exit 0
