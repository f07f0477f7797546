#!/usr/bin/env bash
# `profcpu events`: the events of real traces of .NET 8 to 10, equal to those of TraceEvent; cut and damaged files.
# Runs beside others.
# May take 900 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_published event_oracle-net10-portable wide-net-net8 wide-net-net9 wide-net-net10
ORACLE=$PUBLISHED/event_oracle-net10-portable/event_oracle.dll
ALL=0xFFFFFFFFFFFFFFFF
MANAGED=System.Runtime:$ALL:5:EventCounterIntervalSec=1,System.Threading.Tasks.TplEventSource:$ALL:5
MANAGED+=",System.Diagnostics.Metrics:$ALL:5:Metrics=System.Runtime;RefreshInterval=1"
# shellcheck disable=SC2054 # the commas are between providers
declare -A CONFIG=(
	[runtime]=Microsoft-Windows-DotNETRuntime:$ALL:5
	[samples]=Microsoft-DotNETCore-SampleProfiler:0:4,Microsoft-Windows-DotNETRuntime:0x8C001:4
	[managed]=$MANAGED
)
trace() { # NAME CONFIG PROGRAM SECONDS: the runtime itself writes the trace NAME.nettrace
	DOTNET_EnableEventPipe=1 DOTNET_EventPipeConfig=$2 DOTNET_EventPipeOutputPath=$T/$1.nettrace DOTNET_EventPipeCircularMB=100 \
		"$3" "$4" --threads 2 --except Collect >"$T/$1.log" 2>&1 || fail "$3 $4 gave $?: $(tail -n 5 "$T/$1.log")"
	[ -s "$T/$1.nettrace" ] || fail "$1: no trace: $(tail -n 5 "$T/$1.log")"
}
events() { "$PROFCPU" events "$@" 2>err; }

for version in 8 9 10; do
	for name in "${!CONFIG[@]}"; do
		trace "$name-$version" "${CONFIG[$name]}" "$PUBLISHED/wide-net-net$version/wide-net" 2
		events --raw "$name-$version.nettrace" >lines || fail "exit $?: $(cat err)"
		dotnet "$ORACLE" "$name-$version.nettrace" <lines >verdict || fail "$name-$version: $(head -n 30 verdict)"
		echo "$name-$version: $(stat -c %s "$name-$version.nettrace") bytes, $(tail -n 1 verdict)"
		# Runtimes drop events if their buffer is full.
		! grep -v ': the runtime dropped ' err || fail "$name-$version: $(cat err)"
		at_least "$(wc -l <lines)" 1000 || fail "$name-$version has $(wc -l <lines) events"
	done
done

echo "what is chosen"
R=Microsoft-Windows-DotNETRuntime
events --provider $R --event MethodLoadVerbose runtime-10.nettrace >loaded || fail "$(cat err)"
events --provider $R --event MethodJittingStarted runtime-10.nettrace >jitted || fail "$(cat err)"
events --event 145 --provider $R --no-stacks - <runtime-10.nettrace >same || fail "$(cat err)"
cat >check.py <<'PYTHON'
import json
def lines(name):
    return [json.loads(line) for line in open(name)]
loaded, jitted, same = lines("loaded"), lines("jitted"), lines("same")
assert loaded and all(e["name"] == "MethodLoadVerbose" and e["provider"] == "Microsoft-Windows-DotNETRuntime" for e in loaded)
assert jitted and all(e["payload"]["MethodName"] for e in jitted) and any(len(e.get("stack", [])) > 2 for e in jitted)
for e in jitted:
    e.pop("stack", None)
assert jitted == same
PYTHON
python3 check.py || fail "the chosen events are wrong: $(head -qn 2 loaded jitted)"
events --event NoSuchEvent runtime-10.nettrace >none || fail "$(cat err)"
[ ! -s none ] && grep -q 'none that was chosen' err || fail "no event was chosen: $(cat err)"

echo "bad input"
size=$(stat -c %s samples-10.nettrace)
events samples-10.nettrace >whole || fail "$(cat err)"
for part in 3 2; do
	head -c $((size / part)) samples-10.nettrace >cut.nettrace
	events cut.nettrace >some || fail "cut: exit $?: $(cat err)"
	grep -q 'cut.nettrace was cut off: its last events are missing' err || fail "cut: $(cat err)"
	[ -s some ] && head -n "$(wc -l <some)" whole | cmp -s - some || fail "the events of a cut file differ"
done
cp samples-10.nettrace bad.nettrace
printf '\377\377\377\377' | dd of=bad.nettrace bs=1 seek=$((size / 2)) conv=notrunc status=none
events bad.nettrace >some
[ -s some ] || fail "nothing is left of a damaged file"
: >empty
for file in empty missing "$ORACLE" /; do
	events "$file" >some && fail "$file was accepted"
	[ "$(grep -c . err)" = 1 ] || fail "$file: not one line: $(cat err)"
done
events samples-10.nettrace >/dev/full && fail "a full disk was accepted"
grep -q 'cannot write to stdout: No space left' err || fail "$(cat err)"
events a b >some && fail "two files were accepted"
exit 0
