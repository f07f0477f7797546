#!/usr/bin/env bash
# With -p PARENT, a child that already runs counts as a target: its user is noted, so its perf map names code after its
# end.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need node setpriv pgrep

cat >hot.js <<'JS'
'use strict';
const fs = require('fs');
function knownHot(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
let s = 0;
for (let i = 0; i < 500; i++) s += knownHot(100000);
process.stdout.write('hot\n');
while (!fs.existsSync('stop')) for (let i = 0; i < 50; i++) s += knownHot(100000);
JS
# The last command keeps the shell from executing node in its own process.
start parent setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'node --perf-basic-prof hot.js; true'
parent=$STARTED
wait_for 20 pgrep -P "$parent" -x node >node.pid || fail "node did not start: $(cat parent.log)"
node=$(cat node.pid)
wait_for 60 grep -q hot parent.log || fail "node is not hot: $(cat parent.log)"
"$PROFCPU" collect -q -p "$parent" -F 499 -d 1 --record-only -o rec >log 2>&1 || fail "collect: $(cat log)"
touch stop
wait "$parent"
"$PROFCPU" postprocess --no-download rec >report 2>&1 || fail "postprocess: $(cat report)"
rm -f "/tmp/perf-$node.map"
share=$(awk '{ all += $NF } /knownHot/ { hit += $NF } END { print all ? 100 * hit / all : 0 }' rec/folded_stacks.out)
at_least "$share" 90 || fail "$share % of the samples are named: $(cat report)"
