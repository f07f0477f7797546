#!/usr/bin/env bash
# With windows, waits of different lengths have their shares: of one thread, and of waits of the same length.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need_release

# shares HOGS SECONDS IDLE: records sleeps of known lengths beside threads that only run, and threads that only wait.
shares() {
	rm -rf rec
	"$PROFCPU" collect --off-cpu -o rec -- "$BUILD/helpers/sleeps" "$1" "$2" "$3" >out 2>err || fail "$(cat err)"
	grep -q 'switches were sampled in windows' err || fail "no windows: $(cat err)"
	for functions in 'seven_ms|forty_ms' 'one_ms|hundred_ms' 'five_ms_[abc]'; do
		grep -E "^($functions) " out >answers
		"$BUILD/helpers/waits_check" share 5 answers rec/offcpu.folded || return 1
	done
}
# check NAME HOGS SECONDS IDLE: by chance, a share may be wrong by more than 5 points once, but not twice.
check() {
	echo "$1"
	shares "$2" "$3" "$4" || shares "$2" "$3" "$4" || fail "wrong shares $1"
}

# The storm of another process leaves windows a part of the time only.
start pong env PONG_WORK=20000 "$BUILD/helpers/waits" pong 500
pong=$STARTED
check "beside busy threads" $((2 * $(nproc))) 30 0
check "on a machine with time" 0 30 0
# Fewer waits are sampled here.
check "in a process of many threads" 0 90 120
stop "$pong"
exit 0
