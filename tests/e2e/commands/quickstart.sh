#!/usr/bin/env bash
# scripts/quickstart makes a picture and leaves no process running, also after an interrupt.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need dpkg-query setsid pgrep
need_sampling
need_release
cd "$ROOT" || exit 1
# With the flags of the build, because other tests use what it makes.
! grep -q -- -Werror build/flags || export WERROR=1

# In a session of its own, with Ctrl-C as from a terminal.
quick() { # LOG SECONDS
	setsid env --default-signal=INT scripts/quickstart "$2" >"$T/$1" 2>&1 </dev/null &
	QUICK=$!
	started "$QUICK"
}
picture_of() { sed -n 's/^== the picture: \(.*\) (open.*/\1/p' "$T/$1"; }
nothing_left() { ! pgrep -s "$QUICK"; }

quick whole 2
wait "$QUICK" || fail "exit $?: $(cat "$T/whole")"
picture=$(picture_of whole)
[ -s "$picture" ] || fail "no picture: $(cat "$T/whole")"
grep -qE 'alpha_leaf|Cpu' "$picture" || fail "the picture lacks the example's functions"
T_FILES+=("$(dirname "$picture")"/*)
wait_for 5 nothing_left || fail "left running: $(pgrep -a -s "$QUICK")"
rm -r "$(dirname "$picture")"

quick broken 60
wait_for 60 grep -q '^== profiling PID' "$T/broken" || fail "did not begin: $(cat "$T/broken")"
sleep 2
kill -INT -- "-$QUICK"
before=$SECONDS
wait "$QUICK"
status=$?
[ "$status" = 130 ] || fail "exit $status after Ctrl-C: $(cat "$T/broken")"
[ $((SECONDS - before)) -le 20 ] || fail "took $((SECONDS - before)) s to end"
nothing_left || fail "left running: $(pgrep -a -s "$QUICK")"
target=$(sed -n 's/^== profiling PID \([0-9]*\) .*/\1/p' "$T/broken")
[ ! -e "/tmp/perf-$target.map" ] || fail "left /tmp/perf-$target.map"
written=$(sed -n 's/^written *//p' "$T/broken")
[ -z "$written" ] || rm -r "$written"
