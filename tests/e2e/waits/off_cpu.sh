#!/usr/bin/env bash
# Waits of known length by their stacks; on-CPU outputs are the same as without waits.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_sampling
need_release

WAITS=$BUILD/helpers/waits
SECONDS_OF_WAITS=4
FUNCTIONS="sleep lock pipe futex fault cpu"
"$WAITS" fault 0.1 >/dev/null 2>&1 || FUNCTIONS="sleep lock pipe futex cpu" # no userfaultfd
# no_waits FILE: checks that its samples are of a CPU. A few may be taken there in schedule, shortly before or after a
# wait; the waits themselves are seconds.
no_waits() {
	[ "$(weight_of "$1" ';wait_sleep;.*;schedule ?$')" -lt 100000000 ] || fail "waits count as samples: $(cat "$1")"
}

echo "each function's time"
# shellcheck disable=SC2086 # several words
record_waits rec "${FIRST[@]}" "$PROFCPU" collect --off-cpu --max-overhead 100 -q -o rec -- "$WAITS" $FUNCTIONS $SECONDS_OF_WAITS
mv out answer
grep -v ready answer >answers
"$BUILD/helpers/waits_check" time 1 answers rec/offcpu.folded || fail "times differ from the program's measurements"
for f in $FUNCTIONS; do
	got=$(weight_of rec/offcpu.folded ";start_thread;run_counted;run_$f;wait_$f;")
	[ "$f" = cpu ] && got=$(weight_of rec/offcpu.folded ";start_thread;run_counted;run_cpu;wait_cpu;.*;schedule;[[]waiting for a CPU[]] ?$")
	all=$(weight_of rec/offcpu.folded ";wait_$f;")
	awk -v got="$got" -v all="$all" 'BEGIN { exit !(all > 0 && got >= 0.995 * all) }' || fail "only $got of $all us of wait_$f have the whole stack"
done

echo "perf reads the waits"
perf script -i rec/perf.data -F comm,tid,time,period,event,ip,sym >script 2>perf.err || fail "perf script: $(cat perf.err)"
grep -qi 'order\|invalid\|unknown' perf.err && fail "perf script printed: $(cat perf.err)"
perf report -i rec/perf.data --stdio >/dev/null 2>perf.err || fail "perf report: $(cat perf.err)"
awk '/ offcpu-time:/ { for (i = 1; i <= NF; i++) if ($i == "offcpu-time:") ns += $(i - 1) } END { printf "%.0f\n", ns / 1000 }' script >us
awk -v a="$(cat us)" -v b="$(weight_of rec/offcpu.folded)" 'BEGIN { exit !(a > 0 && a - b < 100 && b - a < 100) }' ||
	fail "perf's samples are $(cat us) us, offcpu.folded has $(weight_of rec/offcpu.folded)"

echo "on-CPU outputs have no waits"
grep -q 'offcpu-time' rec/perf_script.out rec/report.json && fail "waits in perf_script.out"
no_waits rec/folded_stacks.out
ran=$(awk '/^ran / { print 100 * $2 / $3 }' answer) # less on a busy machine
within "$(share_of rec/folded_stacks.out ';wait_cpu')" "$ran" 20 || fail "wait_cpu does not have $ran % of the samples: $(head -n 5 rec/folded_stacks.out)"
grep -q '"off_cpu": {' rec/report.json || fail "report.json has no waits"
# The kernel counts the time for which each thread waits for a CPU, some microseconds after its waking. Without recorded
# wakings only the waits of preempted threads are known.
awk -v got="$(report_number rec runnable_ns)" -v waits="$(report_number rec waits)" \
	-v real="$(sed -n 's/^threads //p' answer)" -v cpu="$(sed -n 's/^wait_cpu .* //p' answer)" -v wakings="$(report_number rec known_waker_ns)" 'BEGIN {
		got /= 1e3; most = 1.01 * real + 20 * waits; least = wakings ? 0.99 * real - 20 * waits : 0.99 * cpu
		print "waiting for a CPU: " got " us are " real " us, of it wait_cpu " cpu " us, " waits " waits"; exit !(cpu > 0 && got <= most && got >= least) }' ||
	fail "waiting for a CPU: $(grep runnable_ns rec/report.json), the kernel counts $(sed -n 's/^threads //p' answer) us"
grep -q '>Off-CPU: command waits<' rec/offcpu.svg || fail "offcpu.svg has another title: $(grep -m 1 '<title>' rec/offcpu.svg)"

echo "the archive has the same waits"
tar -tzf rec/prof.tar.gz | grep -q 'offcpu.folded' || fail "not in the archive"
"$PROFCPU" postprocess -q --offline -o away rec/prof.tar.gz || fail "postprocess"
for file in offcpu.folded offcpu.svg folded_stacks.out offcpu.idx; do
	cmp "rec/$file" "away/$file" || fail "$file of the archive differs"
done

"$PROFCPU" postprocess -q --offline --title 'My <title>' -o titled rec || fail "postprocess --title"
for title in 'titled/flamegraph.svg:' 'titled/offcpu.svg:Off-CPU: ' 'titled/wall.svg:Wall clock: '; do
	grep -q "<title>${title#*:}My &lt;title&gt;</title>" "${title%%:*}" || fail "${title%%:*} has another title: $(grep -m 1 '<title>' "${title%%:*}")"
done

echo "offcpu.idx is private, and damage to it is reported"
[ "$(stat -c %a rec/offcpu.idx)" = 600 ] || fail "offcpu.idx is readable for others"
at_least "$(stat -c %s rec/offcpu.idx)" 10000 || fail "offcpu.idx has few rows"
"$PROFCPU" postprocess -q --offline -o copy rec || fail "postprocess of the directory"
cmp rec/offcpu.idx copy/offcpu.idx || fail "a copy lost its offcpu.idx"
# Perf's form lacks the marks: that of truncated stacks comes from samples.idx, that of time without a CPU from offcpu.idx.
waits_of() { "$PROFCPU" fold --offline --names perf --event-filter offcpu-time "$1" 2>/dev/null; }
printf '\377' | dd of=copy/offcpu.idx bs=1 seek=16 conv=notrunc status=none
"$PROFCPU" postprocess --offline copy >out 2>&1 || fail "postprocess with a damaged offcpu.idx: $(cat out)"
[ "$(grep -c 'offcpu.idx: cannot be used' out)" = 1 ] || fail "the damage is not reported once: $(cat out)"
cmp <(waits_of rec) <(waits_of copy) || fail "a damaged offcpu.idx changes waits"
# A file cut between rows, changed within a row, of another recording, or missing: one warning, no wrong results, and the
# archive stays.
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -o other -- "$WAITS" sleep 1 >/dev/null 2>err || fail "$(cat err)"
# flip FILE OFFSET
flip() {
	local byte
	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059 # an octal escape
	printf "\\$(printf %o $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
# damage WARNING COMMAND...: COMMAND damages a copy of $whole; checks that one warning matches WARNING and other outputs
# are unchanged.
whole=rec
damage() {
	local warning=$1
	shift
	rm -rf copy
	cp -a "$whole" copy
	"$@" || fail "$*"
	"$PROFCPU" postprocess -q --offline copy >out 2>&1 || fail "$*: $(cat out)"
	[ "$(grep -c "warning: copy/$warning" out)" = 1 ] || fail "$*: not one warning of $warning: $(cat out)"
	[ "$(grep -c 'warning: ' out)" = 1 ] || fail "$*: more than one warning: $(cat out)"
	cmp "$whole/prof.tar.gz" copy/prof.tar.gz || fail "$*: the archive with the undamaged file is lost"
	cmp <(waits_of "$whole") <(waits_of copy) || fail "$*: waits changed"
}
no_row=$((24 + 48 * 60))
for how in 'is cut:truncate -s '$no_row' copy/offcpu.idx' "a row is damaged:flip copy/offcpu.idx $((no_row + 17))" \
	'is of another recording:cp other/offcpu.idx copy/offcpu.idx'; do
	# shellcheck disable=SC2086 # several words
	damage "offcpu.idx: cannot be used: .*${how%%:*}; wakers and the times of threads are not known" ${how#*:}
	[ -z "$(compgen -G 'copy/wall.*')$(compgen -G 'copy/wakeup.*')" ] || fail "$how: $(ls copy)"
done
damage 'offcpu.idx: missing; wakers and the times of threads are not known' rm copy/offcpu.idx
[ -z "$(compgen -G 'copy/wall.*')$(compgen -G 'copy/wakeup.*')" ] || fail "missing: $(ls copy)"
# Stacks deeper than the copy: each of their samples has a row in samples.idx.
"$PROFCPU" collect --off-cpu --call-graph full,1024 --max-overhead 100 -q -o deep -- "$BUILD/helpers/workload" deep 100 0.5 >/dev/null 2>err || fail "$(cat err)"
at_least "$(stat -c %s deep/samples.idx)" $((24 + 16 * 10)) || fail "samples.idx has few rows: $(stat -c %s deep/samples.idx) bytes"
whole=deep
for how in 'is cut:truncate -s -8 copy/samples.idx' "a row is damaged:flip copy/samples.idx 27" 'is of another recording:cp other/samples.idx copy/samples.idx'; do
	# shellcheck disable=SC2086 # several words
	damage "samples.idx: cannot be used: .*${how%%:*}; the grades of stacks are not known" ${how#*:}
	grep -q 'wall.folded' <(ls copy) || fail "$how: wall.folded is missing"
done

echo "short waits are left out and counted"
"$PROFCPU" collect --off-cpu --off-cpu-min 3600000000 -o none -- true >answer 2>err || fail "$(cat err)"
[ ! -e none/offcpu.folded ] || fail "offcpu.folded has waits shorter than an hour: $(cat none/offcpu.folded)"
grep -q '^profcpu: none: no offcpu\.\*, wall\.\* and wakeup\.\*, because no wait' err || fail "the reason of missing outputs is not reported: $(cat err)"
# sleep waits at least 20 ms on any machine. On a busy one, more waits of futex (10 ms) become that long.
record_waits rec "${FIRST[@]}" "$PROFCPU" collect --off-cpu --max-overhead 100 --off-cpu-min 15000 -o rec -- "$WAITS" sleep futex 2
grep '^wait_sleep ' out >answers
"$BUILD/helpers/waits_check" time 1 answers rec/offcpu.folded || fail "waits of 20 ms are left out"
grep -Eq 'left out: [1-9][0-9]* waits? shorter than 15000 us, [0-9.]* s' err || fail "$(cat err)"
# Longer than a second: only the first thread waits that long. Excluded are the program's own measurements and the sleep
# of end_futex.
record_waits few "${FIRST[@]}" "$PROFCPU" collect --off-cpu --max-overhead 100 --off-cpu-min 1000000 -o few -- "$WAITS" sleep futex 2
[ "$(weight_of few/offcpu.folded ';wait_')" = 0 ] || fail "waits of 10 and 20 ms are not left out: $(cat few/offcpu.folded)"
at_least "$(weight_of few/offcpu.folded ';main;.*pthread_.*join')" 1900000 || fail "the wait of 2 s is missing: $(cat few/offcpu.folded)"
awk -v left="$(sed -n 's/.*left out: [0-9]* waits* shorter than 1000000 us, \([0-9.]*\) s.*/\1/p' err)" '/^wait_/ { n++; real += $5 / 1e6; if ($1 == "wait_futex") both = $5 / 1e6 }
	END { print "left out are " left " s, the program measured " real; exit !(n == 2 && left >= 0.99 * real && left <= 1.05 * (real + both)) }' out ||
	fail "$(cat out err)"

echo "waits of running processes"
start waiting "$WAITS" sleep pipe 60
wait_for 20 grep -q ready waiting.log || fail "the program did not start"
record_waits rec "${FIRST[@]}" "$PROFCPU" collect --off-cpu --max-overhead 100 -q -d 2 -p "$STARTED" -o rec
part_of_duration rec "$(weight_of rec/offcpu.folded ';wait_sleep;')" 0.95 1.01 || fail "wait_sleep does not have $(duration_us rec) us: $(cat rec/offcpu.folded)"
# The wait of its first thread, which joins the others, began before the recording, so its stack is read during the
# wait. For other threads this concerns only the first wait.
part_of_duration rec "$(weight_of rec/offcpu.folded ';__libc_start_main[^;]*;[^;]*;main;.*pthread_.*join[^;]*;[^;]*futex[^;]* ?$')" 0.95 1.1 ||
	fail "the wait of the first thread is missing: $(cat rec/offcpu.folded)"
awk -v us="$(weight_of rec/offcpu.folded ';[[]no stack[]] ?$')" 'BEGIN { exit !(us < 0.1e6) }' || fail "stacks are missing: $(cat rec/offcpu.folded)"

echo "waits of a killed recorder, whose file has no names of events yet"
"$PROFCPU" collect --off-cpu --max-overhead 100 -q -d 30 -p "$STARTED" -o killed &
killed=$!
wait_for 60 test -s killed/perf.data || fail "the recording did not start"
sleep 2.5
kill -KILL "$killed"
wait "$killed" 2>/dev/null
"$PROFCPU" fold --event-filter=offcpu-time -o folded killed 2>err || fail "fold: $(cat err)"
at_least "$(weight_of folded ';wait_sleep;')" 1000000000 || fail "fold has no waits: $(cat folded)"
"$PROFCPU" fold -o folded killed 2>err || fail "fold: $(cat err)"
no_waits folded
"$PROFCPU" postprocess -q --no-download killed 2>err || fail "postprocess: $(cat err)"
at_least "$(weight_of killed/offcpu.folded ';wait_sleep;')" 1000000 || fail "no waits: $(cat killed/offcpu.folded)"
no_waits killed/folded_stacks.out
"$PROFCPU" postprocess -q --offline killed 2>err || fail "postprocess once more: $(cat err)"
grep -q 'offcpu.idx' err && fail "a killed recording is reported as cut: $(cat err)"
[ ! -e killed/wall.folded ] || fail "wall.folded exists although thread sums are missing"
rows=$(stat -c %s killed/offcpu.idx)
flip killed/offcpu.idx $((rows / 2))
"$PROFCPU" postprocess -q --offline killed 2>err || fail "postprocess with a damaged index: $(cat err)"
grep -q 'offcpu.idx: cannot be used: a row is damaged' err || fail "damage in a killed recording is not reported: $(cat err)"

echo "outputs of a cut recording are replaced"
cp -r rec cut
truncate -s $(($(stat -c %s rec/perf.data) / 2)) cut/perf.data
rm cut/offcpu.idx
[ -s cut/wall.folded ] && [ -s cut/wall.svg ] || fail "no wall.folded before"
"$PROFCPU" postprocess -q --offline cut 2>err
[ $? = 1 ] || fail "postprocess of a cut recording: $(cat err)"
[ -z "$(compgen -G 'cut/wall.*')" ] || fail "outputs of the whole recording remain: $(ls cut)"
part_of_duration rec "$(weight_of cut/offcpu.folded ';wait_sleep;')" 0.15 0.95 || fail "waits of the remaining half are wrong: $(cat cut/offcpu.folded)"
no_waits cut/folded_stacks.out

echo "no off-CPU output without --off-cpu"
"$PROFCPU" collect -q -d 0.3 -p "$STARTED" -o rec || fail "collect"
compgen -G 'rec/offcpu*' && fail "outputs of another recording remain: $(ls rec)"
stop "$STARTED"

echo "an option that --off-cpu excludes"
refuses "$PROFCPU" collect --off-cpu --call-graph fp -o no -- true
exit 0
