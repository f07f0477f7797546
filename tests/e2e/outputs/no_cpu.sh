#!/usr/bin/env bash
# `collect --no-cpu`: event profiles and waits without samples of CPUs. All that reads such a recording says so, in one line.
# May take 120 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_sampling
need_published managed-net10

# begin COMMAND...: starts the program; it throws 1,000 exceptions once $T/go exists.
begin() {
	rm -f go
	start program "$@"
	PID=$STARTED
	wait_for 60 grep -q '^working pid' program.log || fail "$(cat program.log)"
}
# profile DIR COMMAND...: a recording of the exceptions.
profile() {
	local dir=$1 collector
	shift
	"$@" -d 300 -o "$dir" >out 2>err &
	collector=$!
	started "$collector"
	wait_for 60 test -s "$dir/trace.nettrace" || fail "no trace comes: $(cat out err)"
	sleep 0.5
	touch go
	wait_for 120 grep -q '^done' program.log || fail "the program is not done: $(cat program.log out err)"
	sleep 0.5
	kill -INT "$collector"
	wait "$collector" || fail "$*: exit $?: $(cat out err)"
}
# one_line STATUS TEXT ARG...: profcpu ends with STATUS and one message that has TEXT.
one_line() {
	local wanted=$1 text=$2 status=0
	shift 2
	"$PROFCPU" "$@" >out 2>refused || status=$?
	no_crash "$status" "$*"
	[ "$status" = "$wanted" ] || fail "$*: exit $status: $(cat out refused)"
	[ "$(grep -c '^profcpu: ' refused)" = 1 ] && grep -q -- "$text" refused || fail "$*: not one line with '$text': $(cat refused)"
}

echo "exceptions alone"
begin "$PUBLISHED/managed-net10/managed" go exceptions
profile alone "$PROFCPU" collect --no-download --no-cpu --exceptions -p "$PID"
stop "$PID"
! grep -q 'no samples\|record longer' out err || fail "calls the process idle: $(cat out err)"
grep -q '^samples   none on CPUs were taken (--no-cpu)$' out || fail "the report does not say it: $(cat out)"
awk '{ n += $NF } END { exit n != 1000 }' alone/exceptions.folded || fail "$(cat alone/exceptions.folded)"
grep -q 'Catcher.Run();Thrower.Format();.*System.FormatException ' alone/exceptions.folded || fail "no names: $(cat alone/exceptions.folded)"
for file in flamegraph.svg folded_stacks.out perf_script.out; do
	[ ! -e "alone/$file" ] || fail "$file is there, without samples"
done
grep -q '"event": "none",' alone/manifest.json && grep -q '"freq_hz": 0,' alone/manifest.json || fail "$(cat alone/manifest.json)"
grep -q '"no_cpu": true,' alone/report.json || fail "$(head -5 alone/report.json)"

echo "a dummy event that was asked for is not --no-cpu"
"$PROFCPU" collect --no-download -e dummy -d 1 -o dummy -p $$ >out 2>err || fail "$(cat out err)"
! grep -q 'no-cpu' out err || fail "$(cat out err)"

echo "all that reads it"
one_line 0 'warning: .*no CPU samples were taken (--no-cpu)' fold alone
one_line 0 'warning: .*no CPU samples were taken (--no-cpu)' fold alone/prof.tar.gz
one_line 1 'no CPU samples were taken (--no-cpu)' flamegraph -o picture.svg alone
[ ! -e picture.svg ] || fail "an empty picture"
one_line 1 'nothing to compare' compare alone
echo old >alone/folded_stacks.out
"$PROFCPU" postprocess --offline alone >out 2>err || fail "postprocess: $(cat err)"
[ ! -e alone/folded_stacks.out ] || fail "an old file stays"
"$PROFCPU" postprocess --offline -o there alone/prof.tar.gz >out 2>err || fail "postprocess: $(cat err)"
! grep -q . err || fail "postprocess: messages: $(cat err)"
cmp alone/exceptions.folded there/exceptions.folded || fail "exceptions.folded differs"
"$PROFCPU" flamegraph -o picture.svg alone/exceptions.folded 2>err || fail "flamegraph: $(cat err)"

echo "with waits, and the runtime's sampler"
begin "$PUBLISHED/managed-net10/managed" go exceptions gc
profile waits "$PROFCPU" collect --no-download --no-cpu --eventpipe --gc -p "$PID"
stop "$PID"
[ -s waits/offcpu.svg ] && [ -s waits/gc.svg ] && [ -s waits/compare.json ] && [ ! -e waits/compare-diff.svg ] || fail "outputs: $(ls waits)"
one_line 0 'only off-CPU samples' fold waits
"$PROFCPU" fold --event-filter=offcpu-time waits 2>err | grep -q '^managed;.* [0-9]*$' || fail "no waits: $(cat err)"
python3 - <<'PYTHON' || fail "compare: $(cat waits/compare.txt)"
import json
c = json.load(open('waits/compare.json'))
states = c['states_of_samples']
# The events of --gc and --eventpipe are the same in part; asked for twice, the runtime sends no suspensions, and no sample has
# evidence. A busy machine loses some of it.
assert c['samples'] and c['sampler']['rounds'] and states['without_evidence'] < 0.5 * c['samples'], states
assert all('cpu_share' not in m['self'] and 'eventpipe_share' in m['self'] for m in c['methods']), c['methods'][0]
PYTHON

echo "options"
refuses "$PROFCPU" collect --no-cpu -- true
grep -q 'leaves nothing to record' refused || fail "$(cat refused)"
for option in '-F 99' '-c 1000' '-e cpu-clock'; do
	# shellcheck disable=SC2086
	refuses "$PROFCPU" collect --no-cpu --gc $option -- true
	grep -q -- "^profcpu: error: ${option% *} is for CPU samples" refused || fail "$(cat refused)"
done

echo "without the right to sample CPUs"
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] && command -v setpriv >/dev/null; then
	nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env HOME=/tmp)
	chmod 755 "$T"
	mkdir theirs
	cp "$PROFCPU" theirs/
	cp -r "$PUBLISHED/managed-net10" theirs/program
	chown -R 65534:65534 theirs
	begin "${nobody[@]}" theirs/program/managed go exceptions
	profile theirs/rec "${nobody[@]}" theirs/profcpu collect -q --no-download --no-cpu --exceptions -p "$PID"
	stop "$PID"
	! grep -q . err || fail "messages: $(cat err)"
	awk '{ n += $NF } END { exit n != 1000 }' theirs/rec/exceptions.folded || fail "$(cat theirs/rec/exceptions.folded)"
else
	skip_here "the right to sample CPUs is not missing: needs root, setpriv and perf_event_paranoid of at most 2"
fi
