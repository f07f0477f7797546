#!/usr/bin/env bash
# node writes its jitdump in pieces. Names that it wrote after the recording are read when it has ended; until then the
# recording does not claim to have all names. If it was killed, the report says that the rest is missing.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need node awk python3

cat >late.js <<'JS'
'use strict';
const fs = require('fs');
function knownHot(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
let s = 0;
while (!fs.existsSync('stop')) for (let i = 0; i < 50; i++) s += knownHot(100000);
JS
# Percentage of the samples: in the script, into which V8 may inline knownHot, and in code without a name.
share_of_hot() { awk '{ all += $NF } /(JS|LazyCompile):[^;]*late[.]js/ { hit += $NF } END { print all ? 100 * hit / all : 0 }' "$1/folded_stacks.out"; }
share_of_unknown() { awk '{ all += $NF } /;\[unknown\] [0-9]+$/ { hit += $NF } END { print all ? 100 * hit / all : 0 }' "$1/folded_stacks.out"; }
complete() { grep -q "\"symbols_complete\": $2" "$1/manifest.json" || fail "$3: $(cat "$1/manifest.json" "$T/collect.log")"; }
# record_open DIR: records a node whose jitdump lacks the name of hot code. node is stopped then as $STARTED, so that it
# does not write the rest. The length of the script's path, which is in the records, moves the place at which a piece ends.
record_open() {
	local dir=.
	for _ in {1..20}; do
		rm -rf "$1" stop
		dir+=/a23456789b123456789c123456789d
		mkdir -p "$dir" && cp -n late.js "$dir"
		start node node --perf-prof "$dir/late.js"
		wait_for_cpu "$STARTED" 2500 # until V8 has compiled everything
		record "$1" -F 499 -d 1 -p "$STARTED"
		kill -STOP "$STARTED"
		# node may have written it since profcpu read the jitdump.
		rm -rf again && cp -r "$1" again && "$PROFCPU" postprocess -q again 2>/dev/null
		at_least "$(share_of_unknown "$1")" 10 && at_least "$(share_of_unknown again)" 10 && return
		touch stop
		kill -CONT "$STARTED"
		wait "$STARTED"
	done
	fail "node wrote all names at once, 20 times"
}

record_open open
complete open false "all names are claimed while node may write more"
grep -q "had not yet written all names.*profcpu postprocess open. after" collect.log || fail "no reason: $(cat collect.log)"
grep -q '\.NET' collect.log && fail "advice about .NET: $(cat collect.log)"
"$PROFCPU" postprocess open >collect.log 2>&1 || fail "postprocess: $(cat collect.log)"
complete open false "all names are claimed while node still runs"
[ "$(python3 -c 'import json; print([p["names_still_written"] for p in json.load(open("open/report.json"))["processes"]])')" = "[True]" ] ||
	fail "report.json: $(cat open/report.json)"
touch stop
kill -CONT "$STARTED"
wait "$STARTED"
"$PROFCPU" postprocess open >collect.log 2>&1 || fail "postprocess after the end: $(cat collect.log)"
at_least "$(share_of_hot open)" 60 || fail "knownHot has $(share_of_hot open) %: $(cat collect.log)"
at_least 2 "$(share_of_unknown open)" || fail "$(share_of_unknown open) % have no name: $(cat collect.log)"
complete open true "names are not complete after node's end"
rm -f jit-*.dump
"$PROFCPU" postprocess open >collect.log 2>&1 || fail "postprocess without the jitdump: $(cat collect.log)"
at_least "$(share_of_hot open)" 60 || fail "names were not kept: $(cat collect.log)"

# node ends while profcpu still works on the recording: names are read again, at once or by postprocess.
rm -f stop
start node node --perf-prof late.js
wait_for_cpu "$STARTED" 700
(sleep 1.1 && touch stop) &
record last -F 499 -d 1 -p "$STARTED"
wait "$STARTED" "$!"
grep -q '"symbols_complete": true' last/manifest.json || "$PROFCPU" postprocess -q last || fail "postprocess"
at_least "$(share_of_hot last)" 60 || fail "knownHot has $(share_of_hot last) %: $(cat collect.log)"
complete last true "names are not complete"

# A signal ends node before it writes the rest, which nobody can read.
record_open killed
kill -KILL "$STARTED"
wait "$STARTED" 2>/dev/null
"$PROFCPU" postprocess killed >collect.log 2>&1 || fail "postprocess: $(cat collect.log)"
complete killed true "names of a killed process cannot come later"
grep -q 'it was stopped before it wrote the rest; let the program end by itself' collect.log || fail "no reason: $(cat collect.log)"
grep -q '\.NET' collect.log && fail "advice about .NET: $(cat collect.log)"
exit 0
