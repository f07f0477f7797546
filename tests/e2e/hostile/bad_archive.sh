#!/usr/bin/env bash
# Hostile archives: paths that lead out, links, devices, bombs. Nothing is written outside the target directory. Each is
# refused, or its recording is processed without the hostile members.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need tar gzip
need_sampling

start_shares 30
record "$T/rec" -p "$SHARES_PID" -F 199 -d 1
stop "$SHARES_PID"
mkdir -p "$T/work/deep/deeper" "$T/pack/rec" "$T/out"
tar -xzf "$T/rec/prof.tar.gz" -C "$T/pack/rec" --strip-components=1
export TMPDIR=$T/work/deep/deeper
cd "$TMPDIR" || exit 1
echo canary >"$T/pack/evil"

# Compressed files without an archive: the message has the remedy for each kind of compression.
for packer in gzip zstd xz bzip2; do
	command -v $packer >/dev/null || continue
	for file in "$TESTS/golden/fold/cpp.txt" "$TESTS/golden/perf/6.1-g/perf.data"; do
		$packer -c <"$file" >"$T/packed"
		for command in fold flamegraph postprocess; do
			refuses "$PROFCPU" $command "$T/packed"
			grep -q "cannot read $T/packed: it is compressed by $packer, but contains no archive .*; decompress it first ($packer -d)\$" "$T/refused" ||
				fail "$packer: $command: $(cat "$T/refused")"
		done
	done
done

# reports_missing DIR WORDS: checks that every later command reports the missing parts of the damaged recording in DIR.
reports_missing() {
	local i
	for i in "fold $1" "postprocess $1" "fold $1/prof.tar.gz" "postprocess $1/prof.tar.gz -o $1.2" "flamegraph $1.2/prof.tar.gz"; do
		# shellcheck disable=SC2086 # words
		survives "$PROFCPU" $i
		[ "$SURVIVED" = 1 ] || fail "$i: exit $SURVIVED instead of 1"
		[ "$(grep -c ": incomplete: .*$2" "$T/refused")" = 1 ] || fail "$i does not report the missing parts: $(cat "$T/refused")"
	done
	rm -r "$1.2"
}

# Each archive contains the good recording and one bad member.
try() { # NAME TAR-ARGUMENTS...
	local name=$1
	shift
	tar -cf "$T/$name.tar" -C "$T/pack" rec || fail "tar"
	tar -rPf "$T/$name.tar" "$@" || fail "tar $*"
	gzip -f "$T/$name.tar"
	survives "$PROFCPU" fold "$T/$name.tar.gz"
	echo "$name: exit $SURVIVED, $(tail -n 1 "$T/refused")"
	[ "$SURVIVED" = 1 ] || fail "$name: accepted as valid"
	grep -q "$name.tar.gz: members left out" "$T/refused" || fail "$name: accepted without a message"
	[ "$(weight_of "$T/refused.out")" -gt 0 ] || fail "$name: its recording was not processed"
	survives "$PROFCPU" postprocess -o "$T/out/$name" "$T/$name.tar.gz"
	reports_missing "$T/out/$name" 'of its archive w[a-z]* left out'
	find "$T" /tmp -maxdepth 4 -name 'escaped*' -print -quit 2>/dev/null | grep -q . && fail "$name: a file escaped"
	return 0
}
try dotdot -C "$T/pack" --transform 's,^evil,rec/../../escaped,' evil
try dotdot_first -C "$T/pack" --transform 's,^evil,../../../escaped,' evil
try absolute -C "$T/pack" --transform "s,^evil,/tmp/escaped.$$," evil
ln -s "$T" "$T/pack/link"
try link_then_file -C "$T/pack" --transform 's,^link,rec/symbols/link,;s,^evil,rec/symbols/link/escaped,' link evil
ln -s /etc/passwd "$T/pack/shadow"
try link -C "$T/pack" --transform 's,^shadow,rec/perf.data,' shadow
[ -e /dev/null ] && try device -C / --transform 's,^dev/null,rec/device,' dev/null
mkfifo "$T/pack/pipe"
try pipe -C "$T/pack" --transform 's,^pipe,rec/pipe,' pipe
ln "$T/pack/evil" "$T/pack/evil2"
try hard_link -C "$T/pack" --transform 's,^evil2$,rec/escaped_link,;s,^evil$,rec/evil,' evil evil2

# Bombs: very much data in a small file.
mkdir -p "$T/bomb/rec"
head -c 400000000 /dev/zero | cat <(head -c 8 "$T/rec/perf.data") - >"$T/bomb/rec/perf.data"
tar -C "$T/bomb" -cf "$T/bomb.tar" rec
rm -r "$T/bomb"
for packer in 'gzip -9' 'zstd -q'; do
	command -v "${packer% *}" >/dev/null || continue
	$packer -c "$T/bomb.tar" >"$T/bomb.packed"
	refuses "$PROFCPU" fold "$T/bomb.packed"
	echo "$packer: $(cat "$T/refused")"
done
rm "$T/bomb.tar"

# Cut archives are reported as cut, and the readable part is processed. This includes recordings smaller than a block.
"$PROFCPU" fold "$T/rec/prof.tar.gz" >"$T/whole" || fail "fold of the archive gave $?"
all=$(weight_of "$T/whole")
size=$(stat -c %s "$T/rec/prof.tar.gz")
kept=0
for at in 1 2 10 100 $(seq $((size / 10)) $((size / 10)) $((size - 1))) $((size - 10)) $((size - 1)); do
	head -c "$at" "$T/rec/prof.tar.gz" >"$T/cut.tar.gz"
	survives "$PROFCPU" fold "$T/cut.tar.gz"
	[ "$SURVIVED" = 1 ] || fail "an archive of $size bytes cut at $at is accepted as complete"
	[ "$at" = 1 ] || grep -q 'cut.tar.gz: it is cut off' "$T/refused" || fail "does not report the cut: $(cat "$T/refused")"
	w=$(weight_of "$T/refused.out")
	[ "$w" -le "$all" ] || fail "more weight in the first $at bytes than in the whole"
	[ "$w" -eq 0 ] || kept=$((kept + 1))
	[ "$w" -eq 0 ] || share=$(share_of "$T/refused.out" ';main;')
	[ "$w" -eq 0 ] || at_least "$share" 90 || fail "cut at $at: only $share % of the samples have names"
done
echo "$kept of the cut archives have readable samples; the whole has $size bytes"
[ "$kept" -ge 8 ] || fail "only $kept cut archives have readable samples"
cmp "$T/whole" "$T/refused.out" || fail "stacks differ in an archive without its last byte"
head -c $((size / 2)) "$T/rec/prof.tar.gz" >"$T/cut.tar.gz"
survives "$PROFCPU" postprocess -o "$T/out/cut" "$T/cut.tar.gz"
[ "$SURVIVED" = 1 ] || fail "postprocess of a cut archive gave $SURVIVED"
for file in flamegraph.svg folded_stacks.out perf_script.out report.json; do
	[ -s "$T/out/cut/$file" ] || fail "no $file from the readable part"
done

# Later commands report missing parts: of a complete recording, of one of a killed recorder, and of one without a
# manifest. In the last two nothing else reveals them.
mkdir "$T/pack/killed" "$T/pack/bare"
cp -r "$T/pack/rec/manifest.json" "$T/pack/rec/perf.data" "$T/pack/killed"
sed -i 's/"finished": true/"finished": false/; s/"symbols_complete": true/"symbols_complete": false/' "$T/pack/killed/manifest.json"
head -c 8 /dev/zero | dd of="$T/pack/killed/perf.data" bs=1 seek=48 conv=notrunc status=none
cp "$T/pack/killed/perf.data" "$T/pack/bare"
for what in rec killed bare; do
	tar -b 1 -C "$T/pack/$what" -cf "$T/$what.tar" perf.data
	[ "$what" = bare ] || tar -b 1 -C "$T/pack/$what" -cf "$T/$what.tar" manifest.json perf.data
	head -c $(($(stat -c %s "$T/$what.tar") * 7 / 10)) "$T/$what.tar" >"$T/cut.tar"
	survives "$PROFCPU" postprocess -q -o "$T/out/$what" "$T/cut.tar"
	[ "$SURVIVED" = 1 ] || fail "$what: exit $SURVIVED"
	grep -q 'all that it wrote' "$T/refused" && fail "$what: reports a complete recording: $(cat "$T/refused")"
	reports_missing "$T/out/$what" 'cut off: it has [0-9]* of the [0-9]* bytes of perf.data'
done
# A manifest cannot send control characters to a terminal.
sed -i 's/"damage": "/&\\u001b[31m/' "$T/out/rec/manifest.json"
survives "$PROFCPU" fold "$T/out/rec"
grep -qF ': incomplete: \x1b[31m' "$T/refused" || fail "$(cat -v "$T/refused")"

# New outputs replace missing ones, so nothing is missing afterwards.
tar -b 1 -C "$T/pack/rec" -cf "$T/cut.tar" manifest.json symbols samples.idx perf.data perf_script.out
truncate -s -$(($(stat -c %s "$T/pack/rec/perf_script.out") / 2 + 1024)) "$T/cut.tar"
survives "$PROFCPU" postprocess -q -o "$T/out/outputs" "$T/cut.tar"
[ "$SURVIVED" = 1 ] || fail "cut outputs: exit $SURVIVED"
"$PROFCPU" fold "$T/out/outputs/prof.tar.gz" >"$T/again" 2>"$T/err" || fail "exit $?, although nothing is missing: $(cat "$T/err")"
[ ! -s "$T/err" ] || fail "$(cat "$T/err")"
cmp "$T/again" "$T/whole" || fail "stacks differ after new outputs"
for packer in zstd xz bzip2; do
	command -v $packer >/dev/null || continue
	gzip -dc "$T/rec/prof.tar.gz" | $packer >"$T/rec.tar.packed"
	"$PROFCPU" fold "$T/rec.tar.packed" | cmp - "$T/whole" || fail "stacks differ with $packer"
done

# No temporary files remain in TMPDIR.
left=$(find "$TMPDIR" -mindepth 1 | head -n 3)
[ -z "$left" ] || fail "left behind: $left"
