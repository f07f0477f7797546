#!/usr/bin/env bash
# `fold` and `flamegraph` of traces: each sample of the trace counts, and methods have the names of CPU samples.
# Runs beside others.
# May take 600 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_sampling
need_published wide-net-net8 wide-net-net9 wide-net-net10
folded() { "$PROFCPU" fold "$@" >folded 2>err || fail "fold $*: exit $?: $(cat err)"; }
cat >names.py <<'PYTHON'
# The methods that both profiles have, overloads included, have the same names. In the arguments, the list of the runtime
# lacks the outer classes of nested types.
import re, sys
def names(path):
    found = {}
    for line in open(path):
        for frame in line.rsplit(" ", 1)[0].split(";")[1:]:
            if frame.endswith(")") and not frame.startswith("["):
                base, arguments = frame.split("(", 1)
                found.setdefault(base, set()).add(re.sub(r"[^,<>()\[\]&*]+\.", "", arguments))
    return found
cpu, trace = names("cpu/folded_stacks.out"), names("folded")
shared = [base for base in trace if base in cpu]
other = [(trace[b], cpu[b]) for b in shared if not trace[b] & cpu[b]]
print(f"{len(trace)} methods, {len(shared)} also on CPUs, {len(other)} with other arguments", other[:3])
assert len(shared) > 30 and len(other) * 20 <= len(shared), other[:9]
PYTHON

for version in 8 9 10; do
	start "net$version" "$PUBLISHED/wide-net-net$version/wide-net" 600 --threads 2 --except Collect
	pid=$STARTED
	wait_for 120 grep -q '^working pid' "net$version.log" || fail "$(cat "net$version.log")"
	"$PROFCPU" collect -q -p "$pid" -d 4 -o cpu >out 2>err || fail "collect: $(cat out err)"
	"$PROFCPU" trace -q -p "$pid" -d 4 --rundown on -o "net$version.nettrace" 2>err || fail "trace: $(cat err)"
	folded "net$version.nettrace"
	samples=$("$PROFCPU" events --event ThreadSample "net$version.nettrace" | grep -c '"stack":')
	counted=$(awk '{ n += $NF } END { print n }' folded)
	[ "$counted" = "$samples" ] || fail "$counted samples are folded, the trace has $samples"
	python3 names.py || fail "names of .NET $version"
	grep -q '^wide-net;' folded || fail "no name of the program: $(head -n 1 folded)"
	! grep -q 'PollGC' folded || fail "polls for suspension are shown: $(grep PollGC folded | head -n 1)"
	thrown=$("$PROFCPU" events --event ExceptionThrown "net$version.nettrace" | grep -c '"stack":')
	folded --event ExceptionThrown "net$version.nettrace"
	[ "$(awk '{ n += $NF } END { print n }' folded)" = "$thrown" ] || fail "not $thrown exceptions: $(cat folded)"
	stop "$pid"
done

echo "pictures, pipes and other events"
"$PROFCPU" flamegraph -o picture.svg net10.nettrace 2>err || fail "$(cat err)"
grep -q 'outside of managed code' picture.svg || fail "the picture lacks its samples"
"$PROFCPU" flamegraph --event ThreadSample:Type net10.nettrace >types.svg 2>err || fail "$(cat err)"
grep -q 'ThreadSample:Type' types.svg || fail "the picture lacks its event"
folded net10.nettrace
"$PROFCPU" fold - <net10.nettrace >piped 2>err || fail "$(cat err)"
cmp folded piped || fail "a pipe folds otherwise"
"$PROFCPU" postprocess net10.nettrace -o out.dir >out 2>err || fail "postprocess: $(cat out err)"
cmp folded out.dir/folded_stacks.out || fail "postprocess folds otherwise"

echo "bad input"
status=0
"$PROFCPU" fold --event NoSuchEvent net10.nettrace >none 2>err || status=$?
[ "$status" = 1 ] && [ ! -s none ] || fail "exit $status: $(cat none err)"
grep -q 'has no event with a stack named NoSuchEvent; choose other events with .profcpu fold --event' err || fail "$(cat err)"
grep -q 'its events with stacks: .*ThreadSample (' err || fail "$(cat err)"
head -c $(($(stat -c %s net10.nettrace) / 2)) net10.nettrace >cut.nettrace
"$PROFCPU" fold cut.nettrace >some 2>err && fail "a cut trace is no failure"
[ -s some ] && grep -q 'the trace was cut off; what came before is used' err || fail "$(cat err)"
"$PROFCPU" fold --event "ExceptionThrown:ExceptionType" net10.nettrace >none 2>err
! grep -q . none || fail "a text is a weight: $(head -n 1 none)"
grep -q "[0-9] events have no number in the field of 'ExceptionThrown:ExceptionType'" err || fail "$(cat err)"
exit 0
