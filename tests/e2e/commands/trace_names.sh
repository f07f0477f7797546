#!/usr/bin/env bash
# `profcpu trace` names methods from the memory of the process: TraceEvent and `fold` read the names that they read of the
# runtime's own list.
# Runs beside others.
# May take 600 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_published event_oracle-net10-portable wide-net-net8 wide-net-net9 wide-net-net10
ORACLE=$PUBLISHED/event_oracle-net10-portable/event_oracle.dll
RUNTIME=Microsoft-Windows-DotNETRuntime
SAMPLER=Microsoft-DotNETCore-SampleProfiler
trace() { "$PROFCPU" trace "$@" >out 2>err || fail "trace $*: exit $?: $(cat err)"; }
working() { # VERSION SECONDS ARG...: starts wide-net
	start "net$1" "$PUBLISHED/wide-net-net$1/wide-net" "$2" --threads 2 --except Collect "${@:3}"
	wait_for 120 grep -q '^working pid' "net$1.log" || fail "$(cat "net$1.log")"
}
equal() { # FILE: the events of TraceEvent are ours, also the added ones
	"$PROFCPU" events --raw "$1" >lines 2>events.err || fail "$1: $(cat events.err)"
	! grep -q 'cut off' events.err || fail "$1: $(cat events.err)"
	dotnet "$ORACLE" "$1" <lines >verdict || fail "$1: $(head -n 30 verdict)"
	grep -q 'TraceEvent lost 0' verdict || fail "$1: $(tail -n 1 verdict)"
	echo "$1: $(stat -c %s "$1") bytes, $(tail -n 1 verdict)"
}
methods() { "$PROFCPU" events --event "${2:-MethodDCEndVerbose}" "$1" 2>/dev/null | grep -o '"MethodStartAddress":[0-9]*' | sort; }
cat >names.py <<'PYTHON'
# usage: names.py WHAT SHARE OURS RUNTIMES   lines of event_oracle. At least SHARE percent of our frames have names, those of
# the runtime's list at the same addresses. Between the traces, dynamic methods are made anew. TraceEvent writes the names of
# modules in lower case if they were loaded during the trace.
import sys
def load(path):
    found = {}
    for line in open(path):
        address, samples, name = line.rstrip("\n").split(" ", 2)
        module, method = name.split("!", 1)
        found[address] = int(samples), module.lower() + "!" + method
    return found
what, share = sys.argv[1], float(sys.argv[2])
ours, theirs = load(sys.argv[3]), load(sys.argv[4])
total = sum(n for n, _ in ours.values())
named = sum(n for n, name in ours.values() if not name.endswith("!") and not name.startswith(("!", "?!")))
shared = [a for a in ours if a in theirs and "dynamicClass" not in ours[a][1] + theirs[a][1] and not theirs[a][1].endswith("!")]
other = [(a, ours[a][1], theirs[a][1]) for a in shared if ours[a][1] != theirs[a][1]]
print(f"{what}: {100 * named / total:.3f} % of {total} frames have names; {len(other)} of {len(shared)} addresses have others", other[:3])
assert named * 100 >= share * total, [v for v in ours.values() if v[1].startswith("!")][:9]
assert len(shared) > 5 and not other, other[:9]
PYTHON
cat >methods.py <<'PYTHON'
# usage: methods.py WHAT OURS RUNTIMES   lines of `profcpu events`. Our methods are those of the runtime's list at the same
# addresses, field by field. Raw names do not tell generic methods from others.
import json, sys
FIELDS = "MethodSize", "MethodNamespace", "MethodName", "MethodSignature", "ModuleID"
def load(path):
    methods, modules = {}, {}
    for line in open(path):
        event = json.loads(line)
        payload = event["payload"]
        if event["name"] == "MethodDCEndVerbose" and payload["MethodNamespace"] != "dynamicClass":
            payload["MethodSignature"] = payload["MethodSignature"].replace("generic ", "")
            methods[payload["MethodStartAddress"]] = payload
        if event["name"] == "ModuleDCEnd":
            modules[payload["ModuleID"]] = payload["ModuleILPath"].rsplit("/", 1)[-1]
    return methods, modules
ours, modules = load(sys.argv[2])
theirs, their_modules = load(sys.argv[3])
shared = [a for a in ours if a in theirs]
other = [(f, ours[a], theirs[a]) for a in shared for f in FIELDS if ours[a][f] != theirs[a][f]]
other += [(modules[ours[a]["ModuleID"]], theirs[a]) for a in shared if modules[ours[a]["ModuleID"]] != their_modules[theirs[a]["ModuleID"]]]
print(f"{sys.argv[1]}: {len(shared)} of {len(ours)} methods are also in the runtime's list of {len(theirs)}; differences: {len(other)}")
assert len(shared) > 60 and len(shared) * 10 >= len(ours) * 9 and not other, other[:5]
PYTHON
cat >folded.py <<'PYTHON'
# usage: folded.py WHAT OURS RUNTIMES   folded stacks: nearly all frames have names, and methods of both have the same arguments
import sys
def load(path):
    names, unknown, total = {}, 0, 0
    for line in open(path):
        stack, n = line.rsplit(" ", 1)
        for frame in stack.split(";")[1:]:
            total += int(n)
            unknown += int(n) * (frame == "[unknown]")
            if frame.endswith(")") and not frame.startswith("["):
                base, arguments = frame.split("(", 1)
                names.setdefault(base, set()).add(arguments)
    return names, unknown, total
ours, unknown, total = load(sys.argv[2])
theirs, _, _ = load(sys.argv[3])
shared = [base for base in ours if base in theirs]
other = [(ours[b], theirs[b]) for b in shared if not ours[b] & theirs[b]]
print(f"{sys.argv[1]}: {unknown} of {total} frames unknown, {len(shared)} methods in both, {len(other)} with other arguments", other[:3])
assert unknown * 200 <= total and len(shared) > 20
# Overloads: each trace may have another one.
assert len(other) * 20 <= len(shared), other[:9]
PYTHON

for version in 8 9 10; do
	echo ".NET $version"
	working "$version" 600
	pid=$STARTED
	trace -p "$pid" -d 4 -o "own-$version.nettrace"
	grep -q 'named [0-9]* methods, which took [0-9]* ms' err || fail "no names: $(cat err)"
	equal "own-$version.nettrace"
	trace -p "$pid" -d 4 --rundown on -o "list-$version.nettrace"
	! grep -q 'named [0-9]* methods' err || fail "both list methods: $(cat err)"
	for kind in own list; do
		dotnet "$ORACLE" "$kind-$version.nettrace" names >"$kind" || fail "TraceEvent: $(head "$kind")"
		"$PROFCPU" fold "$kind-$version.nettrace" >"$kind.folded" 2>fold.err || fail "fold: $(cat fold.err)"
	done
	for kind in own list; do
		"$PROFCPU" events --provider "${RUNTIME}Rundown" "$kind-$version.nettrace" >"$kind.events" 2>err || fail "$(cat err)"
	done
	python3 methods.py ".NET $version" own.events list.events || fail "methods of .NET $version"
	python3 names.py "TraceEvent" 99.5 own list || fail "names of .NET $version"
	python3 folded.py "fold" own.folded list.folded || fail "names of .NET $version"
	[ -z "$(methods "own-$version.nettrace" | uniq -d)" ] || fail "methods are listed twice: $(methods "own-$version.nettrace" | uniq -d)"
	# The runtime lists all its methods, and we those that are needed.
	at_least "$(methods "list-$version.nettrace" | wc -l)" $((3 * $(methods "own-$version.nettrace" | wc -l))) || fail "we list all methods"
done

echo "the program runs on"
"$PROFCPU" info -p "$pid" >/dev/null || fail "the runtime no longer answers"
trace -p "$pid" -d 1 --rundown off -o none.nettrace
[ -z "$(methods none.nettrace)" ] || fail "--rundown off lists methods"

echo "methods that the runtime reports itself"
trace -p "$pid" -d 3 --providers "$RUNTIME:10:verbose,$SAMPLER" -o jit.nettrace
equal jit.nettrace
methods jit.nettrace >listed
methods jit.nettrace MethodLoadVerbose >loaded
[ -s listed ] && [ -s loaded ] || fail "no methods: $(wc -l listed loaded)"
[ -z "$(comm -12 listed <(uniq loaded))" ] || fail "methods are listed twice: $(comm -12 listed <(uniq loaded) | head)"

echo "pipes"
trace -q -p "$pid" -d 2 -o -
mv out piped.nettrace
equal piped.nettrace
[ -n "$(methods piped.nettrace)" ] || fail "no names through a pipe"

echo "processes that end"
working 10 600
"$PROFCPU" trace -p "$STARTED" -o killed.nettrace 2>err &
tracer=$!
wait_for 60 test -s killed.nettrace || fail "no events: $(cat err)"
sleep 4
kill -KILL "$STARTED"
status=0
wait $tracer || status=$?
[ "$status" = 1 ] && grep -q 'its last events are missing' err && grep -q 'named [0-9]* methods' err || fail "exit $status: $(cat err)"
equal killed.nettrace
"$PROFCPU" fold killed.nettrace >killed.folded 2>fold.err || fail "fold: $(cat fold.err)"
python3 - <<'PYTHON' || fail "a process that ended has no names: $(cat err)"
frames = [(f, int(l.rsplit(" ", 1)[1])) for l in open("killed.folded") for f in l.rsplit(" ", 1)[0].split(";")[1:]]
unknown, total = sum(n for f, n in frames if f == "[unknown]"), sum(n for _, n in frames)
print(f"{unknown} of {total} frames of a killed process are unknown")
assert unknown * 4 <= total
PYTHON
# The runtime lists the methods of a command, which may be short.
trace -o command.nettrace -- "$PUBLISHED/wide-net-net10/wide-net" 1 --threads 1 --except Collect
"$PROFCPU" events --event DCEndComplete command.nettrace | grep -q '"thread":' || fail "no list of a command"
! grep -q 'named [0-9]* methods' err || fail "names of a command: $(cat err)"

echo "memory that cannot be read"
if setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace true 2>/dev/null; then
	socket=$(ls "/tmp/dotnet-diagnostic-$pid-"*-socket)
	setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace "$PROFCPU" trace --diagnostic-port "$socket,connect" -d 1 -o denied.nettrace \
		>out 2>err || fail "$(cat err)"
	grep -q 'the trace has no names of methods: its memory cannot be read, because .*; give profcpu CAP_SYS_PTRACE, or use --rundown on$' err ||
		fail "$(cat err)"
	equal denied.nettrace
	[ -z "$(methods denied.nettrace)" ] || fail "names without permission"
fi

echo "a full disk"
size=$(stat -c %s own-10.nettrace)
# Blocks of 1024 bytes. The names are the last part.
(ulimit -f $((size / 1024 / 2)) && "$PROFCPU" trace -p "$pid" -d 8 -o full.nettrace 2>err) && fail "a file that is too large is no failure"
grep -q 'cannot write full.nettrace: File too large' err || fail "$(cat err)"
[ "$(grep -c 'full.nettrace: has no names of methods' err)" = 1 ] || fail "the missing names are not reported: $(cat err)"
equal full.nettrace
exit 0
