#!/usr/bin/env bash
# `collect --off-cpu --causes`: threads that wait for known causes have these labels for at least 95 % of their waits, on
# .NET 8, 9 and 10. The time that threads waited is that of the program.
# CPU samples of the JIT have the method that it compiles, and those of the GC the phase. Phases have the shares of the runtime's events.
# May take 600 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_sampling
need_published causes-net8 causes-net9 causes-net10

cat >check.py <<'PYTHON'
import collections, json, re, sys
rec, log, expected = sys.argv[1], sys.argv[2], dict(a.split('=', 1) for a in sys.argv[3:])
said = {name: float(ms) for name, ms in re.findall(r'^([a-z-]+) (\d+)$', open(log).read(), re.M)}
report = json.load(open(rec + '/report.json'))['managed']
assert report['lost_events'] == 0 and not report['is_cut'], report
stacks = [line.rsplit(' ', 1) for line in open(rec + '/causes.folded')]
total = sum(s['total'] for s in report['causes']['by'])
assert total == report['causes']['total'] and abs(total / 1000 - sum(int(us) for _, us in stacks)) < 1e3 + len(stacks), report['causes']
off_cpu = sum(int(line.rsplit(' ', 1)[1]) for line in open(rec + '/offcpu.folded')) * 1000
assert abs(off_cpu - total) < 0.01 * total + 5e7, f'{off_cpu / 1e6:.0f} ms off the CPU, {total / 1e6:.0f} ms with causes'
shares = []
for where, label in expected.items():
    # A thread, or all stacks with a method.
    mine = [(stack, int(us)) for stack, us in stacks if stack.split(';')[0] == where or f';{where}' in stack]
    by = collections.Counter()
    for stack, us in mine:
        by[stack.split(';')[-1]] += us / 1000
    waits = sum(by.values()) - by['[waiting for a CPU]'] - by['[no stack]']
    right = sum(ms for found, ms in by.items() if re.fullmatch(label, found))
    assert waits > 0 and right >= 0.95 * waits, f'{where}: {label} has {right:.1f} of {waits:.1f} ms: {by.most_common(6)}'
    # Others also run: they spin, write or collect.
    if where in ('timer', 'socket', 'pipe', 'socket-sender', 'pipe-writer'):
        assert 0.9 * said[where] - 50 <= sum(by.values()) <= 1.05 * said[where] + 400, f'{where}: {sum(by.values()):.0f} ms, the program says {said[where]:.0f}'
    shares.append(f'{where} {100 * right / waits:.1f} % of {waits:.0f} ms')
print('; '.join(shares))
PYTHON

cat >work.py <<'PYTHON'
import collections, json, re, subprocess, sys
rec, profcpu, thread, *wanted = sys.argv[1:]
by, begun, told = collections.Counter(), {}, collections.Counter()
for line in open(rec + '/runtime.folded'):
    stack, us = line.rsplit(' ', 1)
    if re.fullmatch(thread, stack.split(';')[0]):
        by[next(f for f in stack.split(';') if re.match(r'\[(GC|JIT): ', f))] += int(us)
total = sum(by.values())
assert total > 100000, f'{thread}: {total} us'
right = sum(us for label, us in by.items() if any(re.fullmatch(w, label) for w in wanted))
assert right >= 0.95 * total, f'{thread}: {wanted} have {right} of {total} us: {by.most_common(6)}'
print(f'{thread}: {100 * right / total:.1f} % of {total / 1e6:.2f} s of CPU:', ', '.join(f'{l} {100 * us / total:.1f} %' for l, us in by.most_common(4)))
if not wanted[0].startswith('\\[GC'):
    sys.exit()
# The runtime tells how long each phase took.
for line in subprocess.run([profcpu, 'events', rec + '/trace.nettrace'], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines():
    e = json.loads(line)
    if e['provider'].endswith('Private'):
        of, before = {16: ('background mark', 11), 17: ('background sweep', 16)}.get(e['id'], (None, 0))
        if before in begun:
            told[of] += e['time_ns'] - begun.pop(before)
        begun[e['id']] = e['time_ns']
    elif e['name'] == 'GCStart':
        begun['GCStart'] = e['time_ns']
    elif e['name'] == 'GCGlobalHeapHistory' and 'BGC' not in thread:
        us = [v['Time'] for v in e['payload']['Values']]
        if us[-1] == 2**32 - 1: # .NET 8, when it compacts
            us[-1] = max(0, (e['time_ns'] - begun.get('GCStart', e['time_ns'])) // 1000 - sum(us[:-1]))
        told['mark'] += sum(us[:5])
        for phase, took in zip(['plan', 'sweep'] if len(us) == 7 else ['plan', 'relocate', 'compact'], us[5:]):
            told[phase] += took
for phase, took in told.items():
    seen, told_share = 100 * by[f'[GC: {phase}]'] / total, 100 * took / sum(told.values())
    assert abs(seen - told_share) < 5, f'{phase}: {seen:.1f} % of the samples, {told_share:.1f} % of the time'
assert len(told) >= 2, told
PYTHON

# caused VERSION SECONDS OPTION... -- MODE... -- WHERE=LABEL...: records these modes, from their start, and checks labels.
caused() {
	local version=$1 seconds=$2 options=() modes=()
	shift 2
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	name=causes$version-$1 # also for works
	while [ "$1" != -- ]; do modes+=("$1") && shift; done
	shift
	rm -f go
	start "$name" "$PUBLISHED/causes-net$version/causes" "$T/go" "$seconds" "${modes[@]}"
	wait_for 120 grep -q '^working pid' "$name.log" || fail "$(cat "$name.log")"
	"$PROFCPU" collect --no-download --off-cpu --causes "${options[@]}" -p "$STARTED" -d 120 -o "$name" >out 2>err &
	local collect=$!
	wait_for 60 test -s "$name/trace.nettrace" || fail "no events: $(cat err)"
	sleep 1 # names of the methods that run
	touch go
	wait_for 120 grep -q '^[a-z-]* [0-9]*$' "$name.log" || fail "the waits did not end: $(cat "$name.log")"
	kill -INT $collect && wait $collect || fail "collect: $(cat out err)"
	stop "$STARTED"
	python3 check.py "$name" "$name.log" "$@" || fail ".NET $version, ${modes[*]}: $(sed -n '/^waits/,/^events/p' out)"
}

# works THREAD LABEL...: checks the CPU samples of these threads in the last recording.
works() { python3 work.py "$name" "$PROFCPU" "$@" || fail ".NET $version: $(sed -n '/^runtime/,/^events/p' out)"; }

disk=('disk=\[wait: disk\]')
[ "$(stat -f -c %T /tmp)" != tmpfs ] || { disk=() && echo "no waits for disks: /tmp is a tmpfs"; }
TIMER='\[wait: timer\]'
for version in 8 9 10; do
	echo ".NET $version"
	newlock=()
	[ $version = 8 ] || newlock=('newlock=\[locked by newlock-owner-\d+\]' "newlock-owner=$TIMER|\[locked by newlock-\d+\]")
	caused $version 3 -- lock newlock semaphore timer socket pipe disk task -- 'lock=\[locked by lock-owner-\d+\]' \
		"lock-owner=$TIMER|\[locked by lock-\d+\]" "${newlock[@]}" 'semaphore=\[wait: semaphore\]' "semaphore-giver=$TIMER" "timer=$TIMER" \
		'socket=\[wait: network\]' "socket-sender=$TIMER" 'pipe=\[wait: pipe or terminal\]' "pipe-writer=$TIMER" \
		"${disk[@]}" 'task=\[wait: task, sync over async\]'
	caused $version 3 -F 997 -- gc -- 'gc=\[wait: GC\]' "gc-trigger=$TIMER|\[wait: GC\]"
	works gc-trigger '\[GC: (mark|plan|sweep|relocate|compact)\]'
	caused $version 3 -F 997 -- background -- "background=$TIMER|\[wait: GC\]"
	works '\.NET BGC' '\[GC: background (mark|sweep)\]'
	caused $version 3 -- starvation -- 'Waits.NeedsAnother()=\[wait: task, pool starvation\]' "starvation=$TIMER"
	# Runtimes that cannot send single events send those of compilations only with --jit.
	jit=()
	[ $version = 10 ] || jit=(--jit)
	caused $version 3 "${jit[@]}" -- jit -- 'Waits.Invokes(=\[wait: JIT\]'
	works 'jit(-maker)?' '\[JIT: Made.Method\(int32\)\]' # either of them compiles
done
[ -s causes10-jit/causes.svg ] && ! [ -e causes10-jit/jit.svg ] && ! [ -e causes10-jit/gc.svg ] || fail "other pictures than those asked for: $(ls causes10-jit)"

# Waits in windows are estimates, which no event explains.
start timers "$PUBLISHED/causes-net10/causes" "$T/go" 600 semaphore task lock
wait_for 120 grep -q '^working pid' timers.log || fail "$(cat timers.log)"
"$PROFCPU" collect --no-download --off-cpu --causes --max-overhead 0.5 -p "$STARTED" -d 4 -o limited >out 2>err || fail "limited: $(cat out err)"
grep -q 'windows' err || fail "all switches of busy threads fit into the smallest overhead: $(cat err)"
grep -q '%  are estimates: no event of the runtime explains them' out || fail "no warning of estimates: $(cat out err)"
stop "$STARTED"

status=0
"$PROFCPU" collect --causes -p $$ -o none >out 2>err || status=$?
[ "$status" = 2 ] && [ "$(cat err)" = 'profcpu: error: --causes is for waits; add --off-cpu to record them' ] || fail "without --off-cpu: exit $status: $(cat out err)"
exit 0
