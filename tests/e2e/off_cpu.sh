#!/usr/bin/env bash
# What threads do while they do not run: waits of known length, by their stacks; the time on the CPU stays as it is without them.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_sampling
need_release

WAITS=$BUILD/helpers/waits
SECONDS_OF_WAITS=4
FUNCTIONS="sleep lock pipe futex fault cpu"
"$WAITS" fault 0.1 >/dev/null 2>&1 || FUNCTIONS="sleep lock pipe futex cpu" # no userfaultfd

echo "each function's time"
# shellcheck disable=SC2086 # several words
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -o rec -- "$WAITS" $FUNCTIONS $SECONDS_OF_WAITS >answer 2>err || fail "$(cat err)"
grep -v ready answer >answers
"$BUILD/helpers/waits_check" time 1 answers rec/offcpu.folded || fail "other times than the program measured"
for f in $FUNCTIONS; do
	got=$(weight_of rec/offcpu.folded ";start_thread;run_$f;wait_$f;")
	[ "$f" = cpu ] && got=$(weight_of rec/offcpu.folded ";start_thread;run_cpu;wait_cpu;.*;schedule ?$")
	all=$(weight_of rec/offcpu.folded ";wait_$f;")
	awk -v got="$got" -v all="$all" 'BEGIN { exit !(all > 0 && got >= 0.995 * all) }' || fail "wait_$f: of $all us only $got have the whole stack"
done

echo "in perf"
perf script -i rec/perf.data -F comm,tid,time,period,event,ip,sym >script 2>perf.err || fail "perf script: $(cat perf.err)"
grep -qi 'order\|invalid\|unknown' perf.err && fail "perf script says: $(cat perf.err)"
perf report -i rec/perf.data --stdio >/dev/null 2>perf.err || fail "perf report: $(cat perf.err)"
awk '/ offcpu-time:/ { for (i = 1; i <= NF; i++) if ($i == "offcpu-time:") ns += $(i - 1) } END { printf "%.0f\n", ns / 1000 }' script >us
awk -v a="$(cat us)" -v b="$(weight_of rec/offcpu.folded)" 'BEGIN { exit !(a > 0 && a - b < 100 && b - a < 100) }' ||
	fail "perf's samples are $(cat us) us, offcpu.folded has $(weight_of rec/offcpu.folded)"

echo "the time on the CPU by itself"
grep -q 'offcpu-time' rec/perf_script.out rec/report.json && fail "waits in perf_script.out"
grep -q 'wait_sleep;.*do_nanosleep;schedule [0-9]*$' rec/folded_stacks.out && fail "waits in folded_stacks.out"
at_least "$(share_of rec/folded_stacks.out ';wait_cpu')" 80 || fail "on the CPU: $(head -n 5 rec/folded_stacks.out)"
grep -q '"off_cpu": {' rec/report.json || fail "nothing of waits in report.json"
# Who waits for a CPU here is the program's own thread, that shares one with another; the rest waits after each waking only.
sed -n 's/.*"runnable_ns": \([0-9]*\),/\1/p' rec/report.json | awk -v cpu="$(weight_of rec/offcpu.folded ';wait_cpu;')" -v all="$(weight_of rec/offcpu.folded)" \
	'END { exit !($1 >= 990 * cpu && $1 <= 1000 * cpu + 50 * (all - cpu)) }' || fail "waiting for a CPU: $(grep runnable_ns rec/report.json), in wait_cpu $(weight_of rec/offcpu.folded ';wait_cpu;') us"
grep -q '>Off-CPU<' rec/offcpu.svg || fail "offcpu.svg has another title"

echo "elsewhere"
tar -tzf rec/prof.tar.gz | grep -q 'offcpu.folded' || fail "not in the archive"
"$PROFCPU" postprocess -q --offline -o away rec/prof.tar.gz || fail "postprocess"
for file in offcpu.folded offcpu.svg folded_stacks.out offcpu.idx; do
	cmp "rec/$file" "away/$file" || fail "$file is another one"
done

echo "what the recorder knew of waits and threads"
[ "$(stat -c %a rec/offcpu.idx)" = 600 ] || fail "offcpu.idx is not its owner's alone"
at_least "$(stat -c %s rec/offcpu.idx)" 10000 || fail "offcpu.idx has few rows"
"$PROFCPU" postprocess -q --offline -o copy rec || fail "postprocess of the directory"
cmp rec/offcpu.idx copy/offcpu.idx || fail "a copy lost its offcpu.idx"
printf '\377' | dd of=copy/offcpu.idx bs=1 seek=16 conv=notrunc status=none
"$PROFCPU" postprocess --offline copy >said 2>&1 || fail "postprocess with a damaged offcpu.idx: $(cat said)"
[ "$(grep -c 'offcpu.idx cannot be used' said)" = 1 ] || fail "not said once: $(cat said)"
cmp rec/offcpu.folded copy/offcpu.folded || fail "a damaged offcpu.idx changes waits"
# Cut between rows, changed within one, of another recording, or missing: said once, nothing wrong is made of it, and the archive stays.
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -o other -- "$WAITS" sleep 1 >/dev/null 2>err || fail "$(cat err)"
# flip FILE OFFSET
flip() {
	local byte
	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059 # an octal escape
	printf "\\$(printf %o $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
# damage SAID COMMAND...: what COMMAND does to a copy of rec is said so, of the file whose name is in SAID.
damage() {
	local said=$1
	shift
	rm -rf copy
	cp -a rec copy
	"$@" || fail "$*"
	"$PROFCPU" postprocess -q --offline copy >said 2>&1 || fail "$*: $(cat said)"
	[ "$(grep -c "warning: copy/$said" said)" = 1 ] || fail "$*: not said once: $(cat said)"
	[ "$(grep -c 'warning: ' said)" = 1 ] || fail "$*: more is said: $(cat said)"
	cmp rec/prof.tar.gz copy/prof.tar.gz || fail "$*: the archive with the whole one is lost"
	cmp rec/offcpu.folded copy/offcpu.folded || fail "$*: it changes waits"
}
no_row=$((24 + 48 * 60))
for how in 'is cut:truncate -s '$no_row' copy/offcpu.idx' "a row is damaged:flip copy/offcpu.idx $((no_row + 17))" \
	'is of another recording:cp other/offcpu.idx copy/offcpu.idx'; do
	# shellcheck disable=SC2086 # several words
	damage "offcpu.idx cannot be used (.*${how%%:*}): who ended waits is not known" ${how#*:}
	[ -z "$(compgen -G 'copy/wall.*')$(compgen -G 'copy/wakeup.*')" ] || fail "$how: $(ls copy)"
done
damage 'offcpu.idx is missing: who ended waits is not known' rm copy/offcpu.idx
[ -z "$(compgen -G 'copy/wall.*')$(compgen -G 'copy/wakeup.*')" ] || fail "missing: $(ls copy)"
for how in 'is cut:truncate -s -8 copy/samples.idx' "a row is damaged:flip copy/samples.idx 27" 'is of another recording:cp other/samples.idx copy/samples.idx'; do
	# shellcheck disable=SC2086 # several words
	damage "samples.idx cannot be used (.*${how%%:*}): how far stacks can be trusted is not known" ${how#*:}
	grep -q 'wall.folded' <(ls copy) || fail "$how: wall.folded is missing"
done

echo "short ones are left out, and it is said"
"$PROFCPU" collect --off-cpu --off-cpu-min 3600000000 -o none -- true >answer 2>err || fail "$(cat err)"
[ ! -e none/offcpu.folded ] || fail "waits of an hour: $(cat none/offcpu.folded)"
grep -q '^profcpu: none has no offcpu.folded, wall.folded .* nor wakeups: there was no wait' err || fail "why there is none is not said: $(cat err)"
"$PROFCPU" collect --off-cpu --max-overhead 100 --off-cpu-min 15000 -o rec -- "$WAITS" sleep futex 2 >answer 2>err || fail "$(cat err)"
grep -Eq 'left out are 2\.[0-9]* s in [0-9]* waits below 15000 us' err || grep -Eq 'left out are 1\.9[0-9]* s in' err || grep -Eq 'left out are [34]\.[0-9]* s in' err || fail "$(cat err)"
[ "$(weight_of rec/offcpu.folded ';wait_futex;')" -lt 500000 ] || fail "waits of 10 ms are there: $(cat rec/offcpu.folded)"
at_least "$(weight_of rec/offcpu.folded ';wait_sleep;')" 1900000 || fail "waits of 20 ms are not there: $(cat rec/offcpu.folded)"

echo "of running processes"
start waiting "$WAITS" sleep pipe 60
wait_for 20 grep -q ready waiting.log || fail "it did not start"
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -d 2 -p "$STARTED" -o rec || fail "collect -p"
awk -v us="$(weight_of rec/offcpu.folded ';wait_sleep;')" 'BEGIN { exit !(us > 1.9e6 && us < 2.05e6) }' || fail "not 2 s: $(cat rec/offcpu.folded)"
# Its first thread only joins others, and is not seen to begin to: its stack is read as it waits. Of others it is the first wait alone.
awk -v us="$(weight_of rec/offcpu.folded ';__libc_start_main[^;]*;[^;]*;main;.*pthread_.*join[^;]*;[^;]*futex[^;]* ?$')" 'BEGIN { exit !(us > 1.9e6 && us < 2.2e6) }' ||
	fail "the first thread is not there: $(cat rec/offcpu.folded)"
awk -v us="$(weight_of rec/offcpu.folded ';[[]no stack[]] ?$')" 'BEGIN { exit !(us < 0.1e6) }' || fail "stacks are missing: $(cat rec/offcpu.folded)"

echo "of a recorder that was killed, before the events have names in the file"
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -d 30 -p "$STARTED" -o killed &
killed=$!
sleep 2.5
kill -KILL "$killed"
wait "$killed" 2>/dev/null
"$PROFCPU" fold --event-filter=offcpu-time -o folded killed 2>err || fail "fold: $(cat err)"
at_least "$(weight_of folded ';wait_sleep;')" 1000000000 || fail "fold has no waits: $(cat folded)"
"$PROFCPU" fold -o folded killed 2>err || fail "fold: $(cat err)"
grep -q ';wait_sleep;.*schedule [0-9]*$' folded && fail "waits for samples: $(cat folded)"
"$PROFCPU" postprocess -q --no-download killed 2>err || fail "postprocess: $(cat err)"
at_least "$(weight_of killed/offcpu.folded ';wait_sleep;')" 1000000 || fail "no waits: $(cat killed/offcpu.folded)"
grep -q ';wait_sleep;.*schedule [0-9]*$' killed/folded_stacks.out && fail "waits for samples: $(cat killed/folded_stacks.out)"
"$PROFCPU" postprocess -q --offline killed 2>err || fail "postprocess once more: $(cat err)"
grep -q 'offcpu.idx' err && fail "what was killed is taken for cut: $(cat err)"
[ ! -e killed/wall.folded ] || fail "the lives of threads were written at no end, and there is a wall.folded"
rows=$(stat -c %s killed/offcpu.idx)
flip killed/offcpu.idx $((rows / 2))
"$PROFCPU" postprocess -q --offline killed 2>err || fail "postprocess with a damaged index: $(cat err)"
grep -q 'offcpu.idx cannot be used (a row is damaged)' err || fail "damage in what was killed is not said: $(cat err)"

echo "and of one that was cut: nothing stays of what it was before"
cp -r rec cut
truncate -s $(($(stat -c %s rec/perf.data) / 2)) cut/perf.data
rm cut/offcpu.idx
[ -s cut/wall.folded ] && [ -s cut/wall.svg ] || fail "no wall.folded before"
"$PROFCPU" postprocess -q --offline cut 2>err
[ $? = 1 ] || fail "postprocess of a cut recording: $(cat err)"
[ -z "$(compgen -G 'cut/wall.*')" ] || fail "outputs of the whole recording stay: $(ls cut)"
awk -v us="$(weight_of cut/offcpu.folded ';wait_sleep;')" 'BEGIN { exit !(us > 0.3e6 && us < 1.9e6) }' || fail "waits of the half: $(cat cut/offcpu.folded)"
grep -q ';wait_sleep;.*schedule [0-9]*$' cut/folded_stacks.out && fail "waits for samples: $(cat cut/folded_stacks.out)"

echo "without it there is nothing of it"
"$PROFCPU" collect -q -d 0.3 -p "$STARTED" -o rec || fail "collect"
compgen -G 'rec/offcpu*' && fail "left from another recording: $(ls rec)"
stop "$STARTED"

echo "not with all options"
refuses "$PROFCPU" collect --off-cpu --call-graph fp -o no -- true
refuses "$PROFCPU" collect --off-cpu-min 5 -o no -- true
exit 0
