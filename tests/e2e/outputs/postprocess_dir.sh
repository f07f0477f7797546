#!/usr/bin/env bash
# Output directory of postprocess: never inside another recording, and unchanged if the input cannot be read.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling

record one -F 499 -- "$BUILD/examples/shares" 0.3
record two -F 499 -- "$BUILD/examples/shares" -s 0,0,1 0.3
cp one/perf.data alone.data
cp one/prof.tar.gz one.tar.gz
cp one/perf_script.out text.out

# The directory of another recording is refused for any input and stays unchanged.
sha256sum two/* two/symbols/* 2>/dev/null >before
for input in one alone.data one.tar.gz text.out; do
	refuses "$PROFCPU" postprocess "$input" -o two
	grep -q 'two: has another recording.*-o' "$T/refused" || fail "$input: $(cat "$T/refused")"
done
sha256sum two/* two/symbols/* 2>/dev/null | cmp - before || fail "the other recording was changed"

# Outputs of the same recording are accepted: in place, from one of its files, from its archive, from a copy.
cp -r one copy
for input in one one/perf.data one/perf_script.out one/prof.tar.gz one.tar.gz copy; do
	rm one/flamegraph.svg
	"$PROFCPU" postprocess -q "$input" -o one 2>err || fail "$input: exit $?: $(cat err)"
	[ -s one/flamegraph.svg ] || fail "$input: no picture"
	case $input in
	*.out) "$PROFCPU" fold --names perf copy >wanted || fail "fold --names perf gave $?" ;;
	*) cp copy/folded_stacks.out wanted ;;
	esac
	cmp one/folded_stacks.out wanted || fail "$input: stacks differ"
done
for input in one.tar.gz alone.data copy; do
	for time in first second; do
		"$PROFCPU" postprocess -q "$input" -o "again-$input" 2>err || fail "$input, $time time: exit $?: $(cat err)"
	done
done
# Other inputs become a recording with a manifest, names and an archive; the input stays unchanged.
for dir in again-one.tar.gz again-alone.data again-copy; do
	cmp one/folded_stacks.out $dir/folded_stacks.out || fail "stacks of $dir differ from the recording's"
	grep -q '"symbols_complete": true' $dir/manifest.json || fail "$dir has no manifest of complete names"
	[ "$(stat -c %a $dir/perf.data $dir/symbols $dir/prof.tar.gz | xargs)" = "600 700 600" ] || fail "modes in $dir"
	"$PROFCPU" fold --offline $dir/prof.tar.gz | cmp - one/folded_stacks.out || fail "the archive in $dir has no names"
done
# Remains of a killed run are removed by the next run.
for left in prof.tar.gz flamegraph.svg manifest.json symbols/names; do
	echo cut >again-copy/$left.4711.tmp
done
"$PROFCPU" postprocess -q again-copy || fail "exit $?"
[ -z "$(find again-copy -name '*.tmp')" ] || fail "left behind: $(find again-copy -name '*.tmp')"
cmp one/manifest.json again-copy/manifest.json || fail "the manifest of a copy differs"
cmp again-alone.data/perf.data alone.data || fail "perf.data differs from the input"
for key in host os_release arch event; do
	grep "\"$key\"" one/manifest.json | diff - <(grep "\"$key\"" again-alone.data/manifest.json) || fail "the $key of the manifest differs"
done
"$PROFCPU" postprocess -q "$TESTS/golden/perf/6.1-pipe/perf.data" -o of-perf || fail "perf's perf.data: exit $?"
grep -q '"tool": "perf 6\.1' of-perf/manifest.json || fail "the manifest of perf's perf.data: $(cat of-perf/manifest.json)"
[ -s of-perf/prof.tar.gz ] || fail "no archive of perf's perf.data"
refuses "$PROFCPU" postprocess alone.data -o of-perf

# No recording is made among other files; a foreign manifest.json does not count. A text gives only outputs.
mkdir busy
echo '{"name": "a web page"}' >busy/manifest.json
for input in one.tar.gz alone.data one; do
	refuses "$PROFCPU" postprocess $input -o busy
	grep -q 'busy: not empty.*-o' "$T/refused" || fail "$input: $(cat "$T/refused")"
	[ "$(ls busy)" = manifest.json ] || fail "$input: files were added to busy: $(ls busy)"
done
for time in first second; do
	"$PROFCPU" postprocess -q text.out -o busy || fail "outputs beside a foreign file, $time time: exit $?"
done
[ "$(ls busy)" = $'flamegraph.svg\nfolded_stacks.out\nmanifest.json\nperf_script.out\nreport.json' ] || fail "unexpected outputs of a text: $(ls busy)"

# From a pipe: archives work as from a file, perf.data only in pipe format.
# shellcheck disable=SC2002 # it is to be a pipe
cat one.tar.gz | "$PROFCPU" postprocess -q - -o piped || fail "an archive through a pipe: exit $?"
[ -s piped/perf.data ] || fail "no recording from an archive through a pipe"
for command in postprocess fold flamegraph; do
	status=0
	# shellcheck disable=SC2002
	cat alone.data | "$PROFCPU" "$command" - >out 2>err || status=$?
	[ "$status" = 1 ] || fail "$command of a perf.data through a pipe: exit $status"
	[ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
	grep -q 'stdin: .* pipe; give its path' err || fail "no remedy: $(cat err)"
done
"$PROFCPU" postprocess -q - -o redirected <alone.data || fail "a redirected perf.data: exit $?"

# Unreadable input leaves no new directory behind, and an existing one unchanged.
refuses "$PROFCPU" postprocess alone.data -o not/there
grep -q 'output directory not/there: .*mkdir -p' "$T/refused" || fail "$(cat "$T/refused")"
[ ! -e not ] || fail "the parents of a mistyped directory were made"
[ ! -e profilings ] || fail "a directory was made for nothing"
head -c 100 one.tar.gz >cut.tar.gz
echo hello >hello
head -c 200 alone.data >header
mkdir mine
for input in cut.tar.gz hello header missing; do
	refuses "$PROFCPU" postprocess "$input"
	[ ! -e profilings ] || fail "$input: profilings remains"
	refuses "$PROFCPU" postprocess "$input" -o new
	[ ! -e new ] || fail "$input: new remains"
	refuses "$PROFCPU" postprocess "$input" -o mine
	[ -d mine ] || fail "$input: removed the user's directory"
	[ -z "$(ls mine)" ] || fail "$input: files remain in the user's directory: $(ls mine)"
done

# Samples that the kernel lost are counted, and the line has a remedy. The record contains 12.
cp "$TESTS/golden/perf/6.1-pipe/perf.data" lossy.data
printf '\2\0\0\0\0\0\60\0%b\14\0\0\0\0\0\0\0%b' '\0\0\0\0\0\0\0\0' '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >>lossy.data
"$PROFCPU" postprocess lossy.data -o lossy >out || fail "lost samples: exit $?"
grep -q '^samples   98, 12 lost; use a lower -F, or record with CAP_IPC_LOCK, which gives larger rings$' out || fail "lost samples: $(head -n 1 out)"
[ "$(report_number lossy ring_memory)" = 12 ] || fail "the limit of rings has no cost: $(grep -A 3 limits lossy/report.json)"

# A directory that contains only a perf.data is a recording too.
mkdir bare
cp alone.data bare/perf.data
"$PROFCPU" postprocess -q bare 2>err || fail "a directory without a manifest: exit $?: $(cat err)"
"$PROFCPU" fold bare/prof.tar.gz | cmp - bare/folded_stacks.out || fail "stacks of its archive differ"
grep -q '"format": 1' bare/manifest.json || fail "it got no manifest"

# A damaged perf.data does not replace the archive, which may be older and complete. Outputs that were not written are
# not announced.
cp -r one hurt
cp one/prof.tar.gz whole.tar.gz
truncate -s "$(($(stat -c %s one/perf.data) * 6 / 10))" hurt/perf.data
status=0
"$PROFCPU" postprocess hurt >out 2>err || status=$?
[ "$status" = 1 ] || fail "a cut perf.data: exit $status"
cmp hurt/prof.tar.gz whole.tar.gz || fail "the archive of the whole recording is lost"
grep -q 'hurt/prof.tar.gz: kept.*postprocess -o NEW-DIR hurt/prof.tar.gz' err || fail "$(cat err)"
grep -q '^written   hurt$' out || fail "$(cat out)"
"$PROFCPU" postprocess -q -o healed hurt/prof.tar.gz || fail "the archive beside a cut perf.data: exit $?"
cmp healed/folded_stacks.out one/folded_stacks.out || fail "the archive beside a cut perf.data has other stacks"
rm hurt/prof.tar.gz
"$PROFCPU" postprocess -q hurt 2>err
[ -s hurt/prof.tar.gz ] || fail "no archive of a cut perf.data"
cp whole.tar.gz hurt/prof.tar.gz
: >hurt/perf.data
ls -l --time-style=full-iso hurt >before
refuses "$PROFCPU" postprocess hurt
grep -q 'cannot read hurt/perf.data: it is empty; prof.tar.gz beside it may have its contents' "$T/refused" || fail "$(cat "$T/refused")"
grep written "$T/refused.out" && fail "lists outputs although none was written"
ls -l --time-style=full-iso hurt | cmp - before || fail "files of hurt were changed"
printf 'PERFILE2 and no more' >hurt/perf.data
refuses "$PROFCPU" postprocess hurt
grep written "$T/refused.out" && fail "lists outputs although none was written"

# Names of unreadable files are missing for that run only, independent of other commands.
names_are() { # complete|incomplete DIR
	local complete=false
	[ "$1" = incomplete ] || complete=true
	grep -q "\"symbols_complete\": $complete" "$2/manifest.json" || fail "names of $2 are not $1: $(cat "$2/manifest.json")"
}
export HOME=$T # perf may have cached the program in ~/.debug
mkdir app
cp "$BUILD/examples/shares" app/shares
record later --record-only -F 499 -- app/shares 0.3
names_are incomplete later
mv app/shares app/away
for time in first second; do
	"$PROFCPU" postprocess -q --offline later 2>err || fail "offline: exit $?"
	[ "$(grep -c 'later: no names in symbols/, and --offline reads no other files' err)" = 1 ] || fail "offline, $time time: $(cat err)"
	names_are incomplete later
	"$PROFCPU" postprocess -q later 2>err || fail "without the program: exit $?"
	[ "$(grep -c "warning: cannot read 1 file for names, the first is .*/app/shares; .*profcpu postprocess later" err)" = 1 ] ||
		fail "without the program, $time time: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
	names_are incomplete later
	[ "$time" = second ] || cp later/symbols/names names
	cmp names later/symbols/names || fail "stored names changed"
	rm later/symbols/names
done
cp names later/symbols
grep -q 'start_call_main\|start_main' later/folded_stacks.out || fail "no names of readable files: $(head -n 3 later/folded_stacks.out)"
# Another machine adds no names, because a file of the same path may differ there.
sed 's/"host": "/&not-/' later/manifest.json >manifest.json
cp -r later moved && cp manifest.json moved
"$PROFCPU" postprocess -q moved 2>err || fail "on another machine: exit $?"
[ ! -s err ] || fail "on another machine: $(cat err)"
names_are incomplete moved
cmp later/folded_stacks.out moved/folded_stacks.out || fail "stacks differ on another machine"
cmp names moved/symbols/names || fail "stored names differ on another machine"
mv app/away app/shares
"$PROFCPU" postprocess -q later 2>err || fail "with the program: exit $?"
[ ! -s err ] || fail "with the program: $(cat err)"
names_are complete later
at_least "$(share_of later/folded_stacks.out ';main;run_paths;work;')" 90 || fail "names of the program are missing: $(head -n 3 later/folded_stacks.out)"
rm -r app
cp later/folded_stacks.out folded
for option in -q --offline; do
	"$PROFCPU" postprocess -q $option later 2>err || fail "complete: exit $?"
	[ ! -s err ] || fail "complete: $(cat err)"
	names_are complete later
	cmp folded later/folded_stacks.out || fail "stacks of a complete recording changed"
done
rm -r later/symbols
"$PROFCPU" postprocess -q --offline later 2>err || fail "without symbols/: exit $?"
grep -q 'later: no names in symbols/' err || fail "without symbols/: $(cat err)"
names_are incomplete later

# The perf.data of a killed `perf record` is read to its end and stays unchanged, because we cannot finish perf's files.
mkdir foreign
foreign=$TESTS/golden/perf/6.1-g/perf.data
read -r offset size < <(od -A n -t u8 -j 40 -N 16 "$foreign")
head -c $((offset + size)) "$foreign" >foreign/perf.data
head -c 8 /dev/zero | dd of=foreign/perf.data bs=1 seek=48 conv=notrunc status=none
cp foreign/perf.data unfinished
"$PROFCPU" postprocess foreign >out 2>err || fail "an unfinished perf.data of perf: exit $?: $(cat err)"
grep -qE 'its recorder did not finish it; loaded all that it wrote \([1-9][0-9]* samples\)' err || fail "unfinished: $(cat err)"
grep -q '^profcpu: foreign/perf.data: unfinished, and not repaired because another program recorded it' err || fail "unfinished: $(cat err)"
grep -q "cannot repair" err && fail "tried to repair a perf.data of perf: $(cat err)"
cmp foreign/perf.data unfinished || fail "a perf.data of perf was changed"
