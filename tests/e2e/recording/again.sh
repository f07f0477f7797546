#!/usr/bin/env bash
# A second recording into the same directory equals one into a new directory, except that perf.data.old is left of the
# first. A failed start changes nothing, and two recordings at once are refused.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
"$PROFCPU" collect -F 999 -o again -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' || fail "collect"
sum_before=$(cd again && cksum ./*.* symbols/*)
refuses "$PROFCPU" collect -o again -- ./no_such_command
refuses "$PROFCPU" collect -o again -d 1 -p 999999999
refuses "$PROFCPU" collect -o again -d 1 -e nosuchevent -- true
[ "$sum_before" = "$(cd again && cksum ./*.* symbols/*)" ] || fail "a recording that could not begin changed an older one: $(ls again)"
cp again/perf.data first.data
start_shares 60
start long "$PROFCPU" collect -F 999 -p "$SHARES_PID" -d 30 -o busy
LONG=$STARTED
wait_for 20 test -e busy/manifest.json || fail "no recording: $(cat long.log)"
refuses "$PROFCPU" collect -d 1 -o busy -- true
grep -q 'another profcpu writes there' "$T/refused" || fail "refused for another reason: $(cat "$T/refused")"
refuses "$PROFCPU" postprocess busy
sleep 0.5 # for some samples
kill -INT "$LONG"
wait "$LONG" || fail "the recording gave $?: $(cat long.log)"
[ "$(weight_of busy/folded_stacks.out ';work;')" -gt 0 ] || fail "the first recording lacks stacks of the workload"
"$PROFCPU" collect --record-only -F 999 -p "$SHARES_PID" -d 1 -o again || fail "collect into the same directory"
for f in flamegraph.svg folded_stacks.out perf_script.out report.json prof.tar.gz; do
	[ ! -e "again/$f" ] || fail "$f of the older recording remains beside the new perf.data"
done
cmp first.data again/perf.data.old || fail "the older samples are not kept"
"$PROFCPU" postprocess -q again || fail "postprocess"
at_least "$(share_of again/folded_stacks.out ';work;')" 80 || fail "names are missing: $(head -n 3 again/folded_stacks.out)"
