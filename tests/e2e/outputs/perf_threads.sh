#!/usr/bin/env bash
# A directory of perf record --threads gives what perf script prints of it: fold, flamegraph and postprocess read it.
# A missing or cut file is reported, and the rest is read.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_sampling
perf record -h 2>&1 | grep -q -- --threads || skip "needs a perf with record --threads"
export HOME=$T # without cached copies of images
W=$BUILD/helpers/workload

same() { # DIR OPTION...: records and compares
	local dir=$1
	shift
	perf_record "$dir" -q -B -F 499 -g "$@" -- "$W" deep 5 0.5
	[ -f "$dir/data" ] && [ -f "$dir/data.0" ] || fail "perf record $*: no directory: $(ls "$dir")"
	perf script -i "$dir" >script.txt 2>script.err </dev/null || fail "perf script: $(cat script.err)"
	"$PROFCPU" fold script.txt >as_text 2>err || fail "$*: $(cat err)"
	"$PROFCPU" fold --names perf "$dir" >as_data 2>err || fail "$*: $(cat err)"
	[ -s as_text ] || fail "$*: nothing to compare"
	grep -v ": several events in the input; " err && fail "$*: unexpected messages, see above"
	only_ours as_text as_data
	cmp -s as_text as_data || fail "$*: $(diff as_text as_data | head -n 6)"
	echo "$*: $(wc -l <as_data) lines"
}

same one --threads
same all --threads=cpu -a
same cores --threads=core -a -e cpu-clock,page-faults
same packed --threads -z -a
# Without times, perf takes the files in the order of the directory; so such recordings are not compared.

"$PROFCPU" fold all >folded 2>err || fail "$(cat err)"
"$PROFCPU" flamegraph all >of_dir.svg 2>err || fail "$(cat err)"
grep -q '<svg' of_dir.svg || fail "no picture"

# Samples of perf script, a line each, of the test's own programs. In the order of the directory, perf may see a sample of
# another process before the name of the process.
our_samples() { awk -v RS= '{ gsub(/\n/, " ") } /^ *(workload|swapper|perf) /' | sort; }

# The recording that postprocess makes is complete, and perf reads its perf.data as it reads the directory.
for dir in all packed; do
	"$PROFCPU" postprocess "$dir" -o "$dir.rec" >out 2>err || fail "postprocess: $(cat out err)"
	"$PROFCPU" fold "$dir" >folded 2>err || fail "$(cat err)"
	"$PROFCPU" fold --offline "$dir.rec" >again 2>err || fail "$(cat err)"
	cmp folded again || fail "$dir: the recording folds otherwise"
	cmp folded "$dir.rec/folded_stacks.out" || fail "$dir: folded_stacks.out differs"
	perf script -i "$dir" 2>/dev/null </dev/null | our_samples >of_dir
	perf script -i "$dir.rec/perf.data" 2>script.err </dev/null | our_samples >of_file
	[ -s of_dir ] || fail "$dir: nothing to compare"
	cmp -s of_dir of_file || fail "perf reads the merged file otherwise: $(diff of_dir of_file | head -n 4) $(cat script.err)"
	"$PROFCPU" postprocess "$dir" -o "$dir.rec" >out 2>err || fail "postprocess again: $(cat out err)"
done
[ ! -e all/manifest.json ] || fail "postprocess wrote into perf's directory"

# Damage: the readable part, one warning, exit status 1.
cp -r all cut
size=$(stat -c %s cut/data.0)
truncate -s $((size - 12)) cut/data.0
status=0
"$PROFCPU" fold cut >part 2>err || status=$?
[ "$status" = 1 ] || fail "a cut file: exit $status"
[ -s part ] || fail "a cut file: nothing is read"
grep -q '^profcpu: warning: cut: 1 of its files are missing, cut or damaged, data\.0 the first;' err || fail "$(cat err)"
if [ -e all/data.1 ]; then
	cp -r all hole
	rm hole/data.0
	status=0
	"$PROFCPU" fold hole >part 2>err || status=$?
	[ "$status" = 1 ] && [ -s part ] || fail "a missing file: exit $status"
	grep -q 'data\.0 the first' err || fail "$(cat err)"
fi
mkdir wrong
echo text >wrong/data
for command in fold flamegraph postprocess; do
	status=0
	"$PROFCPU" "$command" wrong >part 2>err || status=$?
	[ "$status" = 1 ] || fail "$command of a wrong directory: exit $status"
	grep -qx 'profcpu: error: cannot read wrong: this is not perf.data' err || fail "$command: $(cat err)"
done
