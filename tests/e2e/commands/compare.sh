#!/usr/bin/env bash
# `profcpu compare`: samples of the runtime's sampler get the state that their threads had, on .NET 8, 9 and 10. The times of
# threads are those of the application and of a trace of the scheduler.
# May take 400 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_tracefs
need python3
need_sampling
need_published routes-net8 routes-net9 routes-net10

cat >check.py <<'PYTHON'
import json, sys
rec, log, points = sys.argv[1], sys.argv[2], float(sys.argv[3])
c = json.load(open(rec + '/compare.json'))
begin, end = c['from_ns'], c['to_ns']
window = end - begin
notes = {}
for line in open(log):
    word = line.split()
    if word[0] in ('cpu', 'wait'):
        notes.setdefault((word[0], int(word[1])), []).append((int(word[2]), int(word[3])))

def cpu_at(notes, ns):
    for (a, x), (b, y) in zip(notes, notes[1:]):
        if a <= ns <= b:
            return x + (y - x) * (ns - a) / (b - a)
    sys.exit(f'the application has no times around {ns}')

states = ('running', 'waiting_for_cpu', 'blocked', 'without_evidence')
samples = c['states_of_samples']
assert sum(samples.values()) == c['samples'] > 1000, samples
missing = samples['without_evidence'] / c['samples']
assert missing < 0.01, f'{missing:%} of the samples lack evidence'
assert c['clock']['checked'] and c['clock']['offset_ns'] == 0, c['clock']
threads = {t['tid']: t for t in c['threads']}
inner = json.load(open(sys.argv[4])) if len(sys.argv) > 4 else {}
for (route, tid), log in notes.items():
    t = threads[inner.get(str(tid), tid)]
    used = (cpu_at(log, end) - cpu_at(log, begin)) / window * 100
    ran = t['ns']['running'] / window * 100
    assert abs(used - ran) < points, f'{route} {tid}: {used:.2f} % by its own clock, {ran:.2f} % compared'
    # Samples are taken while the sampler does not stop the thread, but it waits for a CPU after each stop, too.
    labels = t['samples']
    known = t['ns']['running'] + t['ns']['waiting_for_cpu'], labels['running'] + labels['waiting_for_cpu']
    if route == 'cpu':
        by_time, by_samples = (n / whole * 100 for n, whole in zip((t['ns']['running'], labels['running']), known))
        assert abs(by_time - by_samples) < 12, f'{tid}: {by_time:.1f} % of the time, {by_samples:.1f} % of the samples run'
    if 'name' in t and t['name']:
        assert t['name'] == route, t
methods = {m['name']: m['total'] for m in c['methods']}
cpu, wait = methods.get('Routes.Cpu()'), methods.get('Routes.Wait()')
def shares(m): return {s: m['samples'][s] / max(1, sum(m['samples'].values())) for s in states}
print({'window': window / 1e9, 'without evidence': missing, 'cost': c['sampler']['cost'], 'cpu': cpu and (cpu['cpu_share'], cpu['eventpipe_share'], shares(cpu)),
       'wait': wait and (wait['cpu_share'], wait['eventpipe_share'], shares(wait))})
if cpu and wait:
    running, waiting = (sum(1 for n in notes if n[0] == r) for r in ('cpu', 'wait'))
    alike = cpu['eventpipe_share'] / running / (wait['eventpipe_share'] / waiting)
    assert 0.85 < alike < 1.18, f'EventPipe shows a thread of one route {alike:.2f} times as often'
    assert cpu['cpu_share'] > 0.9 > 0.1 > wait['cpu_share'], (cpu, wait)
    assert wait['eventpipe_running_share'] < 0.1, wait
PYTHON
# begin VERSION SECONDS RUNNING WAITING: starts the program; sets $PID.
begin() {
	local version=$1
	shift
	start routes "$PUBLISHED/routes-net$version/routes" "$@"
	PID=$STARTED
	wait_for 60 grep -q '^working pid' routes.log || fail "$(cat routes.log)"
}
# ends: waits until the program has printed its times.
ends() { wait_for 60 grep -qE '^(cpu|wait) ' routes.log && wait_for 60 sh -c "! kill -0 $PID 2>/dev/null"; }
compare() { "$PROFCPU" compare -q --no-download "$@" 2>err || fail "compare $*: exit $?: $(cat err)"; }

# thrice COMMAND...: measures, at most three times. Other programs of the machine can spoil a measurement by chance.
thrice() { "$@" || "$@" || "$@"; }
# routes_of VERSION: two threads that compute and four that wait.
routes_of() {
	begin "$1" 9 2 4
	compare -p "$PID" -d 4 -o "net$1"
	ends || fail ".NET $1: the program did not end: $(cat routes.log)"
	python3 check.py "net$1" routes.log 3
}

for version in 8 9 10; do
	echo ".NET $version"
	thrice routes_of "$version" || fail "comparison of .NET $version: $(cat "net$version/compare.txt")"
	for picture in compare.svg compare-diff.svg; do
		grep -q 'Routes.Cpu()' "net$version/$picture" || fail "no method in $picture"
	done
	grep -q 'EventPipe samples' "net$version/compare.svg" || fail "no part for the samples"
done

echo "without tracefs: no word about wakers, which it does not show"
if unshare --mount true 2>/dev/null; then
	start routes "$PUBLISHED/routes-net10/routes" 30 1 1
	wait_for 60 grep -q '^working pid' routes.log || fail "$(cat routes.log)"
	unshare --mount sh -c 'for d in /sys/kernel/debug/tracing /sys/kernel/debug /sys/kernel/tracing; do umount -l $d 2>/dev/null; done; exec "$@"' sh \
		"$PROFCPU" compare --no-download -p "$STARTED" -d 1 -o quiet >out 2>err || fail "without tracefs: $(cat err)"
	! grep -qE 'waker|wakeup|tracefs' out err || fail "talks of wakers: $(cat out err)"
	stop "$STARTED"
fi

echo "as in a trace of the scheduler"
cat >sched.py <<'PYTHON'
import json, re, sys
c = json.load(open('beside/compare.json'))
begin, end = c['from_ns'], c['to_ns']
tids = {t['tid']: t['ns'] for t in c['threads'] if t['name'] in ('cpu', 'wait')}
state, since, sums = {}, {}, {t: dict.fromkeys('rwb', 0) for t in tids}
def change(tid, ns, to):
    if tid not in tids:
        return
    if tid in state:
        a, b = max(since[tid], begin), min(ns, end)
        if b > a:
            sums[tid][state[tid]] += b - a
    state[tid], since[tid] = to, ns
for line in open('sched.txt'):
    m = re.match(r'.* (\d+)\.(\d{6}): (sched_\w+): (.*)', line)
    if not m:
        continue
    ns, event, text = int(m[1]) * 10**9 + int(m[2]) * 1000, m[3], m[4]
    if event == 'sched_switch':
        m = re.search(r' prev_pid=(\d+) .*prev_state=(\S+) ==> .* next_pid=(\d+)', text)
        change(int(m[1]), ns, 'w' if m[2].startswith('R') else 'b')
        change(int(m[3]), ns, 'r')
    else:
        tid = int(re.search(r' pid=(\d+)', text)[1])
        if state.get(tid) == 'b':
            change(tid, ns, 'w')
for tid in tids:
    change(tid, end, state.get(tid, 'b'))
    whole = end - begin
    for key, word in (('r', 'running'), ('w', 'waiting_for_cpu'), ('b', 'blocked')):
        ours, theirs = tids[tid][word] / whole * 100, sums[tid][key] / whole * 100
        print(tid, word, round(ours, 2), round(theirs, 2))
        # The states that our recording calls unknown may be of one kind.
        assert abs(ours - theirs) < 2 + tids[tid]['unknown'] / whole * 100, f'thread {tid}, {word}: {ours:.2f} % and {theirs:.2f} % traced'
PYTHON
# Not by perf: while it handles one event, the kernel drops further ones of that CPU, and tells nobody.
tracing=/sys/kernel/tracing/instances/profcpu_test_$$
end_tracing() { rmdir "$tracing"; }
beside() {
	mkdir "$tracing" || skip "needs to trace by tracefs"
	trap 'end_tracing; t_clean_up' EXIT
	echo mono >"$tracing/trace_clock"
	echo 32768 >"$tracing/buffer_size_kb"
	begin 10 9 5 5
	for event in sched_switch sched_wakeup sched_wakeup_new; do
		echo 1 >"$tracing/events/sched/$event/enable"
	done
	sleep 0.5
	compare -p "$PID" -d 4 -o beside
	sleep 0.2
	echo 0 >"$tracing/tracing_on"
	cp "$tracing/trace" sched.txt
	! grep -qE '^overrun: [1-9]|^dropped events: [1-9]' "$tracing"/per_cpu/cpu*/stats || fail "the trace lost events"
	end_tracing
	trap t_clean_up EXIT
	ends || fail "the program did not end: $(cat routes.log)"
	python3 check.py beside routes.log 3 && python3 sched.py >sched.out 2>&1
}
thrice beside || fail "other states than in the trace: $(cat beside/compare.txt; tail -n 20 sched.out)"

echo "one burner: a lone thread runs, others are blocked"
cat >burner.py <<'PYTHON'
import json
m = {m['name']: m['total']['samples'] for m in json.load(open('burner/compare.json'))['methods']}
def share(name, state): return m[name][state] / sum(m[name].values())
print('running', share('Routes.Cpu()', 'running'), 'blocked', share('Routes.Wait()', 'blocked'))
assert share('Routes.Cpu()', 'running') >= 0.95 and share('Routes.Wait()', 'blocked') >= 0.95
PYTHON
one_burner() {
	begin 10 7 1 5
	compare -p "$PID" -d 3 -o burner
	ends
	python3 check.py burner routes.log 3 && python3 burner.py
}
thrice one_burner || fail "one burner: $(cat burner/compare.txt)"

echo "from the recording, on another machine"
compare -o there net10/prof.tar.gz
cmp there/compare.json net10/compare.json || fail "the archive is compared otherwise"
"$PROFCPU" compare net10 >again 2>err || fail "a recording: $(cat err)"
cmp <(head -n 20 net10/compare.txt) <(head -n 20 again) || fail "the text is printed otherwise"
"$PROFCPU" events net10/trace.nettrace | grep -c ThreadSample >count || fail "the trace cannot be read"

echo "a command, and a process of another PID namespace"
"$PROFCPU" compare -q --no-download -o command -- "$PUBLISHED/routes-net10/routes" 3 1 1 >routes.log 2>err || fail "a command: $(cat routes.log err)"
grep -q 'Routes.Cpu()' command/compare.txt || fail "a command: $(cat command/compare.txt)"
start inner unshare --pid --fork --kill-child --mount-proc "$PUBLISHED/routes-net10/routes" 9 1 2
wait_for 60 grep -q '^working pid' inner.log || fail "$(cat inner.log)"
compare -p "$(pgrep -P "$STARTED")" -d 3 -o inner
wait_for 60 grep -q '^wait ' inner.log
python3 -c 'import json; print(json.dumps({i: int(o) for o, i in (line.split() for line in open("inner/trace.threads"))}))' >ids.json
wait_for 20 sh -c "! kill -0 $STARTED 2>/dev/null"
python3 check.py inner inner.log 3 ids.json || fail "another namespace: $(cat inner/compare.txt)"

echo "bad input"
fails() { # TEXT COMMAND...: fails with one such line
	local text=$1
	shift
	survives "$@" && fail "$* succeeds"
	grep -q "$text" err || fail "$* does not say '$text': $(cat err)"
}
survives() { "$@" >out 2>err; }
start shares "$BUILD/examples/shares" 20
fails 'is not a .NET process' "$PROFCPU" compare -q -p "$STARTED" -d 1 -o native
[ ! -e native ] || fail "a process without .NET is recorded"
"$PROFCPU" collect -q -p "$STARTED" -d 1 -o native 2>err || fail "collect: $(cat err)"
fails 'nothing to compare' "$PROFCPU" compare native
"$PROFCPU" compare net10 -q -o after 2>err || fail "options behind a recording: $(cat err)"
cmp after/compare.json net10/compare.json || fail "a copied recording is compared otherwise"
cp -r net10 cut && rm cut/compare.* && truncate -s 60000 cut/trace.nettrace
"$PROFCPU" compare cut >out 2>err || fail "a cut trace: $(cat err)"
grep -q '^lost .* end of the trace is missing' out || fail "the cut is not reported: $(cat out)"
head -c 3000 /dev/urandom >cut/trace.nettrace
fails 'nothing can be compared' "$PROFCPU" compare cut
[ ! -e cut/compare.json ] || fail "an old comparison stays"
begin 10 30 1 1
"$PROFCPU" compare -q --no-download -p "$PID" -d 20 -o killed >out 2>err &
comparer=$!
wait_for 20 test -s killed/trace.nettrace || fail "no trace comes"
sleep 2
kill -KILL "$PID"
wait "$comparer" && fail "a killed process is no failure"
grep -q 'ended suddenly' err || fail "not said: $(cat err)"
grep -q 'Routes.Cpu()' killed/compare.txt || fail "what came is lost: $(cat err)"
fails 'has another recording' "$PROFCPU" compare -q net10 -o net9
fails 'a command is missing' "$PROFCPU" compare --
refuses "$PROFCPU" compare -p 1,2
refuses "$PROFCPU" compare -p 1 net10
refuses "$PROFCPU" collect --eventpipe -a
