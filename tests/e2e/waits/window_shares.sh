#!/usr/bin/env bash
# With windows, waits of different lengths have their shares: of one thread, and of waits of the same length.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need_release

# check NAME HOGS: records sleeps of known lengths beside that many threads that only run.
check() {
	echo "$1"
	rm -rf rec
	"$PROFCPU" collect --off-cpu -o rec -- "$BUILD/helpers/sleeps" "$2" 30 >out 2>err || fail "$(cat err)"
	grep -q 'switches were sampled in windows' err || fail "no windows: $(cat err)"
	for functions in 'seven_ms|forty_ms' 'one_ms|hundred_ms' 'five_ms_[abc]'; do
		grep -E "^($functions) " out >answers
		"$BUILD/helpers/waits_check" share 5 answers rec/offcpu.folded || fail "wrong shares of $functions"
	done
}

check "beside busy threads" $((2 * $(nproc)))
# It leaves windows about a tenth of the time.
start pong env PONG_WORK=20000 "$BUILD/helpers/waits" pong 60
pong=$STARTED
check "beside a storm of another process" 0
stop "$pong"
exit 0
