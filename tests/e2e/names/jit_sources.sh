#!/usr/bin/env bash
# JIT-compiled code has the name that was valid when it was sampled. Names come from jitdumps of node, of .NET, and of our
# own writer, and equal those of perf inject. If a jitdump stopped early, they come from the perf map.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need perf node awk
[ "$(uname -m)" = x86_64 ] || skip "needs x86-64, because jit_writer makes code for it"

# share DIR PATTERN: percentage of the samples with a leaf that matches.
share() {
	awk -v leaf="$2" '{ n = $NF; $NF = ""; sub(/ $/, ""); all += n; count = split($0, f, ";"); if (f[count] ~ leaf) hit += n }
		END { printf "%.1f\n", all ? 100 * hit / all : 0 }' "$1/folded_stacks.out"
}
# about NAME GOT EXPECTED TOLERANCE
about() {
	awk -v got="$2" -v want="$3" -v by="$4" 'BEGIN { exit !(got >= want - by && got <= want + by) }' ||
		fail "$1 has $2 % of the samples, not $3 %"
}

# The program reuses addresses during the recording.
record own -F 999 -d 120 -- "$BUILD/helpers/jit_writer" 2
about jit_first "$(share own '^jit_first$')" 30 8
about jit_second "$(share own '^jit_second$')" 20 8
about jit_moving "$(share own '^jit_moving$')" 25 8
about jit_third "$(share own '^jit_third$')" 25 8
grep -q ' jitdump - jit_moving$' own/symbols/names || fail "names do not come from the jitdump: $(cat own/symbols/names)"

# Each sample has perf's name. Exclude moved code, because perf inject makes no file for it.
perf inject --jit -i own/perf.data -o injected.data >inject.log 2>&1 || fail "perf inject: $(cat inject.log)"
perf script -i injected.data -F time,ip,sym 2>/dev/null >theirs.txt
perf script -i own/perf.data -F time,ip 2>/dev/null | awk '/^ *[0-9]+\.[0-9]+:/ { n++ } END { print n }' >samples
# leaves FILE: time and leaf of each sample
leaves() { awk '/^[^ \t].*:$|^ *[0-9]+\.[0-9]+: *$/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) t = $i; first = 1; next }
	first && NF > 1 { sub(/\+0x.*/, "", $2); print t, $2; first = 0 }' "$1"; }
leaves theirs.txt | grep -E ' jit_' | grep -v ' jit_moving' >theirs
perf_ours() { awk '/^[^ \t]/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) t = $i; first = 1; next }
	first && NF > 1 { sub(/\+0x.*/, "", $2); print t, $2; first = 0 }' own/perf_script.out; }
perf_ours | grep -E ' jit_' | grep -v ' jit_moving' >ours
[ "$(wc -l <theirs)" -gt 500 ] || fail "perf inject names only $(wc -l <theirs) samples"
cmp theirs ours || { diff theirs ours | head; fail "names differ from perf inject's"; }

# Lines come from the jitdump while the file exists, and from the recording after postprocess --lines.
lines_of() { # FOLDED: samples of each leaf function by line
	awk 'match($0, /;jit_[a-z]+[^;]*$/) { leaf = substr($0, RSTART + 1, RLENGTH - 1); sub(/ [0-9]+$/, "", leaf); sum[leaf] += $NF }
		END { for (f in sum) print f, sum[f] }' "$1" | sort
}
"$PROFCPU" fold --lines own >own.lines || fail "fold --lines"
lines_of own.lines >lines
for f in jit_first:102 jit_second:202 jit_moving:302 jit_third:402; do
	name=${f%:*} line=${f#*:}
	awk -v name="$name" -v loop="$name:made.jit:$line" -v head="$name:made.jit:$((line - 1))" '
		index($1, name) == 1 { all += $2 } $1 == loop { hit += $2 } $1 == head { other += $2 }
		END { exit !(hit > 0.9 * all && hit + other == all) }' lines || fail "$name is not at line $line: $(cat lines)"
done
"$PROFCPU" postprocess -q --lines own || fail "postprocess --lines"
mkdir gone && mv jit-*.dump gone
"$PROFCPU" fold --lines own 2>err | cmp own.lines - || fail "lines differ without the jitdump"
[ ! -s err ] || fail "$(cat err)"
cp -r own copied
"$PROFCPU" fold --offline --lines copied 2>/dev/null | cmp own.lines - || fail "lines differ in a copy"
mv gone/* . && rmdir gone && rm -r copied

# The recording alone gives the same names.
rm -f jit-*.dump
"$PROFCPU" fold own >again || fail "fold"
"$PROFCPU" fold --offline own | cmp again - || fail "stacks differ offline"
grep -q 'jit_moving' again || fail "no names without the jitdump"

# Captured methods give names on any machine: the same methods as a file, also if the file is cut.
pid=$(sed -n 's/^image jit - 0 0 0 0 \([0-9]*\) .*/\1/p' own/symbols/names | head -1)
{
	echo "profcpu-methods 1"
	echo "process $pid $pid 0 0"
	awk '$1 == "symbol" && $4 == "jitdump" { s = $2; n = $3; name = $6; from = 0; next }
		s && $1 == "during" { from = $2; until = $3 } s { print "add", from, s, n, "rundown", name; if (until && until != "ffffffffffffffff")
		print "gone", until, s, "rundown" } { s = until = 0 }' own/symbols/names
} >methods
grep -c '^add' methods | grep -qx 5 || fail "not five methods: $(cat methods)"
sed -n 1,2p methods >sorted && sed 1,2d methods | sort -k 2,2 -k 1,1r >>sorted # in the order of a capture
mv own/symbols/names names.kept
cp sorted "own/symbols/$pid.methods" && printf 'add 0 1000 10 rundown cut' >>"own/symbols/$pid.methods"
made() { awk 'match($0, /;jit_[a-z]+/) { sum[substr($0, RSTART + 1, RLENGTH - 1)] += $NF } END { for (f in sum) print f, sum[f] }' | sort; }
"$PROFCPU" fold --offline own | made >captured
made <again | cmp captured - || fail "names differ with captured methods: $(cat methods)"
rm "own/symbols/$pid.methods" && mv names.kept own/symbols/names

# Times of another clock cannot be compared; the last code at an address gives the name.
perf_record other.data -F 499 -g -- "$BUILD/helpers/jit_writer" 0.5
"$PROFCPU" fold other.data >other.folded || fail "fold of perf's recording"
grep -q 'jit_second' other.folded || fail "no names with another clock"
grep -q 'jit_first' other.folded && fail "times of another clock were compared"
perf_record mono.data -k 1 -F 499 -g -- "$BUILD/helpers/jit_writer" 0.5
"$PROFCPU" fold mono.data >mono.folded || fail "fold of perf's recording"
for f in jit_first jit_second jit_moving jit_third; do
	grep -q "$f" mono.folded || fail "no $f in a recording of perf record -k 1"
done

# In its own PID namespace the file name has the PID inside.
if [ "$(id -u)" = 0 ] && unshare -pf true 2>/dev/null; then
	rm -f jit-*.dump
	record inside -F 499 -d 120 -- unshare -pf "$BUILD/helpers/jit_writer" 0.5
	[ -e jit-1.dump ] || fail "the writer is not process 1: $(echo jit-*)"
	grep -q ' jitdump - jit_third$' inside/symbols/names || fail "no names in a PID namespace"
	start inside unshare -pf "$BUILD/helpers/jit_writer" 6
	sleep 3
	record attached -F 499 -d 1 -p "$(pgrep -P "$STARTED")"
	grep -q ' jitdump - jit_' attached/symbols/names || fail "no names of a running process in a PID namespace"
	stop "$STARTED"
else
	echo "not root: PID namespaces are not tested"
fi

# A replaced jitdump is ignored.
rm -f jit-*.dump
record strange -F 499 -d 120 -- "$BUILD/helpers/jit_writer" 0.3
dump=$(echo jit-*.dump)
rm -rf strange/symbols
cp "$dump" copy && mv copy "$dump"
"$PROFCPU" fold strange 2>/dev/null | grep -q ';jit_' && fail "a replaced jitdump was used"
rm -f jit-*.dump copy

# node, with a perf map and with a jitdump
cat >hot.js <<'JS'
'use strict';
function knownHot(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
const begun = process.cpuUsage().user; // of CPU time, as the machine may be busy
let s = 0;
while (process.cpuUsage().user - begun < 1500000) s += knownHot(100000);
console.log(s);
JS
for way in --perf-basic-prof --perf-prof; do
	record node -F 499 -d 120 -- node "$way" hot.js
	T_FILES+=(/tmp/perf-"$(sed -n 's/^image jit - 0 0 0 0 \([0-9]*\) .*/\1/p' node/symbols/names | head -1)".map)
	awk -v s="$(share node '(JS|LazyCompile):.knownHot')" 'BEGIN { exit !(s > 60) }' ||
		fail "node $way: knownHot has $(share node '(JS|LazyCompile):.knownHot') %: $(cat collect.log)"
	rm -rf node
done
grep -qE ' jitdump - (JS|LazyCompile):.*knownHot' <(record node -F 499 -d 120 -- node --perf-prof hot.js; cat node/symbols/names) ||
	fail "node's jitdump was not used"
