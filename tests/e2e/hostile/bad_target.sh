#!/usr/bin/env bash
# Targets that do not exist, belong to others, end at once, or execute another program; and wrong usage. Each works or
# has its own message.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling

# A PID without a process.
sleep 0.01 &
gone=$!
wait "$gone"
refuses "$PROFCPU" collect -p "$gone" -d 1 -o "$T/gone"
grep -q "$gone" "$T/refused" || fail "the message lacks the PID: $(cat "$T/refused")"
[ ! -e "$T/gone/perf.data" ] || fail "made a recording without a target"

# Wrong usage is status 2.
for args in '-p 0' '-p -5' '-p x' '-p 1x' '-d 0 -p 1' '-d -1 -p 1' '-d x -p 1' '-F 0 -p 1' '-F x -p 1' '--no-such' '-e nosuchevent -p 1'; do
	# shellcheck disable=SC2086
	survives "$PROFCPU" collect $args -o "$T/usage"
	case $args in
	*nosuchevent*) [ "$SURVIVED" != 0 ] ;;
	*) [ "$SURVIVED" = 2 ] ;;
	esac || fail "collect $args gave $SURVIVED: $(cat "$T/refused")"
done

# A command that ends within a millisecond, one that fails, one that does not exist.
survives "$PROFCPU" collect -o "$T/true" -- /bin/true
[ -e "$T/true/perf.data" ] || fail "no recording of a command that ends at once: $(cat "$T/refused")"
refuses "$PROFCPU" collect -o "$T/none" -- "$T/no/such/program"
grep -q 'no/such/program' "$T/refused" || fail "the message lacks the program: $(cat "$T/refused")"

# The target ends during the recording: the recording ends with it, long before the duration.
start_shares 1
before=$SECONDS
record "$T/ends" -p "$SHARES_PID" -F 199 -d 50
[ $((SECONDS - before)) -lt 20 ] || fail "did not end with its target"
[ -s "$T/ends/flamegraph.svg" ] || fail "no picture of a target that ended"

# The target executes another program and has children: all names and symbols are found.
record "$T/exec" -F 499 -- /bin/sh -c "sleep 0.2; exec '$BUILD/examples/shares' 1"
grep -q '^shares;.*;main;run_paths;work;alpha;alpha_leaf' "$T/exec/folded_stacks.out" ||
	fail "no names after exec: $(head -n 3 "$T/exec/folded_stacks.out")"
record "$T/child" -F 499 -- /bin/sh -c "'$BUILD/examples/shares' 1; '$BUILD/examples/shares' -s 0,0,1 1"
# The first child uses 10 %, the second all; both get the available CPU within a second.
at_least "$(share_of "$T/child/folded_stacks.out" ';gamma_leaf')" 15 || fail "the second child is missing"

# Ctrl-C and SIGTERM end a recording, and it is saved within 10 s.
for sig in INT TERM; do
	start_shares 30
	# Background jobs of a shell ignore SIGINT, and a shell cannot restore signals that were ignored at its start.
	start collect env --default-signal=INT "$PROFCPU" collect -p "$SHARES_PID" -F 199 -d 60 -o "$T/$sig"
	pid=$STARTED
	wait_for 20 test -s "$T/$sig/perf.data" || fail "SIG$sig: did not begin: $(cat "$T/collect.log")"
	wait_for_cpu "$SHARES_PID" 300
	kill -"$sig" "$pid"
	before=$SECONDS
	wait "$pid"
	status=$?
	[ $((SECONDS - before)) -le 10 ] || fail "SIG$sig: took $((SECONDS - before)) s to save"
	[ "$status" = 0 ] || fail "SIG$sig: exit $status: $(cat "$T/collect.log")"
	[ -s "$T/$sig/flamegraph.svg" ] || fail "SIG$sig: no picture"
	stop "$SHARES_PID"
done
