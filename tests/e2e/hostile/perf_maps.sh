#!/usr/bin/env bash
# The perf map of an ended process counts only if it is its own. A huge map takes no more memory than there is.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_release # sanitizers take several times the memory of the test's group
need_sampling
need node awk python3 setpriv

cat >hot.js <<'JS'
function knownHot(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
const begun = process.cpuUsage().user; // of CPU time, as the machine may be busy
let s = 0;
while (process.cpuUsage().user - begun < 1500000) s += knownHot(100000);
JS
chmod 644 hot.js
user() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
share_of_hot() { awk '{ all += $NF } /knownHot/ { hit += $NF } END { print all ? 100 * hit / all : 0 }' "$1/folded_stacks.out"; }
# again [COMMAND...]: names the recording afresh, by COMMAND.
again() {
	rm -f rec/symbols/names
	"$@" "$PROFCPU" postprocess --no-download rec >again.log 2>&1 || fail "postprocess: $(cat again.log)"
}
# count KEY: a number of the report about names of JIT-compiled code.
count() { python3 -c 'import json, sys; print(json.load(open("rec/report.json"))["jit_names"][sys.argv[1]])' "$1" ; }

# The user of the process was recorded, so names come after its end, though the recorder has another one.
for way in none auto; do
	record rec -F 499 --jit-names=$way -- setpriv --reuid=4321 --regid=4321 --clear-groups node --perf-basic-prof hot.js
	pid=$(sed -n 's/^image jit - 0 0 0 0 \([0-9]*\) .*/\1/p' rec/symbols/names | head -1)
	map=/tmp/perf-$pid.map
	T_FILES+=("$map")
	[ "$(stat -c %u "$map")" = 4321 ] || fail "the map is not the user's: $(stat "$map")"
	at_least "$(share_of_hot rec)" 60 || fail "knownHot has $(share_of_hot rec) % with $way: $(cat collect.log)"
	again
	at_least "$(share_of_hot rec)" 60 || fail "knownHot has $(share_of_hot rec) % with $way the next time: $(cat again.log)"
done
[ "$(count perf_maps_refused)" = 0 ] || fail "a map was refused: $(cat rec/report.json)"

# Another user leaves a file of that name.
cp "$map" own.map
rm "$map"
user 4322 sh -c "sed s/knownHot/forgedHot/ <own.map >$map" 2>/dev/null || { sed s/knownHot/forgedHot/ own.map >"$map" && chown 4322 "$map"; }
again
grep -q forgedHot rec/folded_stacks.out && fail "another user's names were used"
grep -qE "JIT-compiled code of process $pid .*its perf map may belong to another user; if you trust it, give it to root with chown" again.log ||
	fail "no reason: $(cat again.log)"
[ "$(count perf_maps_refused)" = 1 ] || fail "no map counts as refused: $(cat rec/report.json)"
# The advice, followed to the letter
chown root "$map"
"$PROFCPU" postprocess --no-download rec >again.log 2>&1 || fail "postprocess: $(cat again.log)"
grep -q forgedHot rec/folded_stacks.out || fail "root's map was not used: $(cat again.log)"

# 300 MB of older lines, and 128 MiB of memory. The newest lines are read.
python3 - "$map" <<'P'
import sys
own = open('own.map').read()
with open(sys.argv[1], 'w') as f:
    for part in range(100):
        f.write(''.join('%x 10 LazyCompile:~older function number %d in a long file /srv/app.js\n' % (0x1000 + 16 * i, i)
                        for i in range(40000 * part, 40000 * part + 40000)))
    f.write(own)
P
group=/sys/fs/cgroup/memory/profcpu-test-$$
limit=memory.limit_in_bytes
if ! mkdir "$group" 2>/dev/null; then
	group=/sys/fs/cgroup/profcpu-test-$$ limit=memory.max
	mkdir "$group" 2>/dev/null && [ -e "$group/$limit" ] || {
		rmdir "$group" 2>/dev/null
		skip "needs a memory control group of its own; owners were checked"
	}
fi
echo $((128 << 20)) >"$group/$limit"
# shellcheck disable=SC2016 # for the other shell
again sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group"
rmdir "$group"
at_least "$(share_of_hot rec)" 60 || fail "knownHot has $(share_of_hot rec) % with little memory: $(cat again.log)"
cut=$(count perf_map_bytes_left_out)
[ "$cut" -gt 100000000 ] && [ "$cut" -lt "$(stat -c %s "$map")" ] || fail "$cut bytes were left out of $(stat -c %s "$map")"
grep -q 'of perf maps were left out' again.log || fail "nothing says what was cut: $(cat again.log)"
# With enough memory all of it is read.
again
[ "$(count perf_map_bytes_left_out)" = 0 ] || fail "bytes were left out: $(cat again.log)"
