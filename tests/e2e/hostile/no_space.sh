#!/usr/bin/env bash
# Full and read-only file systems give a clear message and a nonzero status; written parts can be opened.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need mount
need_root
need_sampling
mkdir "$T/small" "$T/frozen"
mount -t tmpfs -o size=600k none "$T/small" 2>/dev/null || skip "needs the right to mount"
T_MOUNTED+=("$T/small")
mount -t tmpfs -o ro none "$T/frozen" || fail "mount"
T_MOUNTED+=("$T/frozen")

start_shares 60 -t 4 -i 0
survives "$PROFCPU" collect -p "$SHARES_PID" -F 4000 -d 20 -o "$T/small/rec"
[ "$SURVIVED" = 1 ] || fail "exit $SURVIVED on a full device"
grep -m 1 'error: ' "$T/refused" | grep -qi 'perf.data: .*: no space' || fail "the full device is not reported: $(cat "$T/refused")"
[ -s "$T/small/rec/perf.data" ] || fail "no samples were kept"
cp -r "$T/small/rec" "$T/rec"
# ended_early DIR COMMAND...: checks that it reports when the recording in DIR ended, and treats it as incomplete.
ended_early() {
	local dir=$1
	shift
	survives "$@"
	[ "$SURVIVED" = 1 ] || fail "exit $SURVIVED instead of 1: $*"
	[ "$(grep -cE "warning: $dir: incomplete: the recording ended after [0-9.]+ of [0-9]+ s: (No space left|File too large)" "$T/refused")" = 1 ] ||
		fail "the early end is not reported: $*: $(cat "$T/refused")"
	if grep -q 'none lost' "$T/refused.out"; then
		fail "reports no loss: $(cat "$T/refused.out")"
	fi
}
grep -qE 'error: .*perf.data: cannot be written further after [0-9.]+ of 20 s: No space' "$T/refused" || fail "the time of the end is not reported: $(cat "$T/refused")"
ended_early "$T/rec" "$PROFCPU" postprocess "$T/rec"
grep -qE '^samples   [0-9]+ of an incomplete recording(, [0-9]+ lost; .*)?$' "$T/refused.out" || fail "the report lacks the incomplete recording: $(cat "$T/refused.out")"
ended_early "$T/rec/prof.tar.gz" "$PROFCPU" fold "$T/rec/prof.tar.gz"
[ -s "$T/rec/flamegraph.svg" ] || fail "the recorded part cannot be opened: $(cat "$T/refused")"
at_least "$(share_of "$T/rec/folded_stacks.out" ';work;')" 80 || fail "stacks of the workload are missing"

# A limit that one output reaches: the other outputs and the report exist.
(
	ulimit -f 200
	ended_early "$T/limited" "$PROFCPU" collect -p "$SHARES_PID" -F 4000 -d 20 -o "$T/limited"
	grep -q 'error: cannot write .*/perf_script.out: File too large' "$T/refused" || fail "perf_script.out fits into 200 KB"
	grep -q '^hottest .*_leaf' "$T/refused.out" || fail "no report if one output cannot be written: $(cat "$T/refused.out")"
) || exit 1
tar tzf "$T/limited/prof.tar.gz" >"$T/members" || fail "no archive if one output cannot be written"
grep -q perf.data "$T/members" || fail "the archive has no samples"
grep -q perf_script "$T/members" && fail "the archive has an output that could not be written"

# Waits: sums of threads are written at the end, into reserved space.
rm -rf "$T/small/rec" "$T/small/ballast"
mount -o remount,size=250k "$T/small" || fail "remount"
survives "$PROFCPU" collect --off-cpu --max-overhead 100 -d 30 -o "$T/small/rec" -- "$BUILD/helpers/waits" sleep pipe futex 40
cp "$T/refused" "$T/off.err"
waits=$(sed -n 's/.*waits: still running as process \([0-9]*\).*/\1/p' "$T/refused")
[ -z "$waits" ] || kill "$waits"
[ "$SURVIVED" = 1 ] || fail "exit $SURVIVED on a full device"
grep -qE 'error: .*perf.data: cannot be written further after [0-9.]+ of 30 s: No space' "$T/refused" || fail "the time of the end is not reported: $(cat "$T/refused")"
grep -qE 'off-CPU: [0-9]+ waits?, [0-9.]+ s, in ([1-9]|[0-9]+[1-9][0-9]*)[0-9.]* s of thread lifetime' "$T/refused" || fail "no thread lifetime: $(cat "$T/refused")"
[ "$(grep -c 'error: cannot write .*No space' "$T/refused")" = 1 ] || fail "not one message about outputs that do not fit: $(cat "$T/refused")"
grep -q "or write elsewhere: .profcpu postprocess -o NEW-DIR $T/small/rec" "$T/refused" || fail "no remedy: $(cat "$T/refused")"
[ "$(($(stat -c %b "$T/small/rec/offcpu.idx") * 512))" -lt "$(($(stat -c %s "$T/small/rec/offcpu.idx") + 4096))" ] || fail "reserved space remains"
ended_early "$T/small/rec" "$PROFCPU" postprocess -o "$T/other-disk" "$T/small/rec"
life=$(sed -n 's/.* in \([0-9.]*\) s of thread lifetime.*/\1/p' "$T/off.err")
awk -v life="$life" '{ us += $NF } END { exit !(NR && life && us / 1e6 > 0.999 * life && us / 1e6 < 1.001 * life) }' "$T/other-disk/wall.folded" ||
	fail "wall.folded does not sum to $life s of thread lifetime: $(cat "$T/other-disk/wall.folded")"
grep -q ';wait_sleep' "$T/other-disk/offcpu.folded" || fail "written waits are missing: $(cat "$T/other-disk/offcpu.folded")"
mount -o remount,size=600k "$T/small" || fail "remount"

# Outputs that do not fit.
record "$T/good" -p "$SHARES_PID" -F 999 -d 2
rm -rf "$T/small/rec"
mkdir "$T/small/rec"
cp -r "$T/good/perf.data" "$T/good/symbols" "$T/good/manifest.json" "$T/small/rec/" || fail "the recording does not fit"
sed -i 's/"symbols_complete": true/"symbols_complete": false/' "$T/small/rec/manifest.json"
head -c 1M /dev/zero >"$T/small/ballast" 2>/dev/null
survives "$PROFCPU" postprocess "$T/small/rec"
[ "$SURVIVED" = 1 ] || fail "exit $SURVIVED with outputs that do not fit"
grep -m 1 'error: ' "$T/refused" | grep -qi 'no space' || fail "no reason: $(cat "$T/refused")"
grep -q '"symbols_complete": true' "$T/small/rec/manifest.json" || fail "the manifest was not updated on a full device: $(cat "$T/refused")"
grep -q '^hottest .*_leaf' "$T/refused.out" || fail "no report if outputs cannot be written: $(cat "$T/refused.out")"
[ ! -s "$T/small/rec/flamegraph.svg" ] || tail -c 20 "$T/small/rec/flamegraph.svg" | grep -q '</svg>' ||
	fail "a cut flamegraph.svg remains"
rm -rf "$T/small/rec/symbols"
head -c 1M /dev/zero >>"$T/small/ballast" 2>/dev/null
survives "$PROFCPU" postprocess "$T/small/rec"
grep -q 'cannot keep the names in .*/symbols: No space' "$T/refused" || fail "missing names are not reported: $(cat "$T/refused")"

# Room for the recording of an archive but not for all outputs, and too little room for both.
rm -rf "$T/small/rec"
cp "$T/good/prof.tar.gz" "$T/archive"
needs=$(($(cat "$T/good/perf.data" "$T/good/symbols/names" "$T/good/flamegraph.svg" "$T/good/folded_stacks.out" | wc -c) / 1024 + 40))
[ "$(($(stat -c %s "$T/good/perf_script.out") / 1024))" -gt $((needs / 4)) ] || fail "perf_script.out is too small for this test"
for size in $((needs + needs / 4)) 40; do
	rm -f "$T/small/ballast"
	mount -o "remount,size=${size}k" "$T/small" || fail "remount"
	survives "$PROFCPU" postprocess "$T/archive" -o "$T/small/rec"
	[ "$SURVIVED" = 1 ] || fail "exit $SURVIVED of an archive that does not fit"
	if [ "$size" = 40 ]; then
		grep -q "error: cannot unpack $T/archive: .*: No space left on device; make room or choose .* -o" "$T/refused" || fail "$(cat "$T/refused")"
		[ ! -e "$T/small/rec" ] || fail "files remain"
		refuses env TMPDIR="$T/small" "$PROFCPU" fold "$T/archive"
		grep -q 'No space left on device; set TMPDIR' "$T/refused" || fail "$(cat "$T/refused")"
	else
		grep -q 'perf_script.out: No space left on device; free some space' "$T/refused" || fail "$(cat "$T/refused")"
		cmp "$T/small/rec/perf.data" "$T/good/perf.data" || fail "the recording was not unpacked"
		cmp "$T/small/rec/folded_stacks.out" "$T/good/folded_stacks.out" || fail "outputs that fit are missing"
		rm -r "$T/small/rec"
		TMPDIR="$T/small" "$PROFCPU" fold "$T/archive" | cmp - "$T/good/folded_stacks.out" || fail "fold of an archive needs room for its outputs"
	fi
done
mount -o remount,size=600k "$T/small" || fail "remount"

# More samples than fit into memory; reading them takes sanitizer builds long.
if is_release; then
	awk 'BEGIN { for (i = 0; i < 4300000; i++) print "ab 1 1: e:\n\t1 f (m)\n" }' >"$T/many"
	refuses env TMPDIR="$T/small" "$PROFCPU" postprocess -o "$T/many.dir" "$T/many"
	grep -q 'No space left.*set TMPDIR' "$T/refused" || fail "the message lacks the full directory: $(cat "$T/refused")"
	TMPDIR="$T/small" "$PROFCPU" fold "$T/many" >"$T/folded" || fail "fold keeps single samples"
	grep -qx 'ab;f 4300000' "$T/folded" || fail "folded: $(cat "$T/folded")"
	rm "$T/many" "$T/folded"
fi

for command in fold flamegraph; do
	"$PROFCPU" "$command" "$T/good" >/dev/full 2>"$T/refused" && fail "$command: success on a full device"
	grep -q 'error: cannot write .* to stdout: No space left on device; make room where stdout goes' "$T/refused" ||
		fail "$command on a full device: $(cat "$T/refused")"
done
# A limit of file sizes ends no command without a message.
for command in fold flamegraph; do
	(ulimit -f 1 && exec "$PROFCPU" "$command" "$T/good" -o "$T/cut") >out 2>"$T/refused" && fail "$command: success beyond the file size limit"
	grep -q 'error: cannot write .*: File too large; raise the limit (ulimit -f)' "$T/refused" ||
		fail "$command beyond the file size limit: $(cat "$T/refused")"
	[ ! -e "$T/cut" ] || fail "$command leaves a cut file"
done
for arguments in help version ps doctor "postprocess $T/good" "help fold" "fold --help" "help collect"; do
	# shellcheck disable=SC2086 # several words
	"$PROFCPU" $arguments >/dev/full 2>"$T/refused" && fail "$arguments: success on a full device"
	[ "$(grep -c 'error: .*No space left on device; make room where stdout goes' "$T/refused")" = 1 ] ||
		fail "$arguments on a full device: $(cat "$T/refused")"
done

refuses "$PROFCPU" collect -p "$SHARES_PID" -d 1 -o "$T/frozen/rec"
grep -q frozen "$T/refused" || fail "the message lacks the directory: $(cat "$T/refused")"
