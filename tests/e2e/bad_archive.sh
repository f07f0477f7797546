#!/usr/bin/env bash
# Archives that want to be more than a recording: names that lead out, links, devices, bombs. Nothing of them is written
# where it should not be, and each is refused, or the recording in it is processed without them.
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

# Each gets the good recording and one bad member.
try() { # NAME TAR-ARGUMENTS...
	local name=$1
	shift
	tar -cf "$T/$name.tar" -C "$T/pack" rec || fail "tar"
	tar -rPf "$T/$name.tar" "$@" || fail "tar $*"
	gzip -f "$T/$name.tar"
	survives "$PROFCPU" fold "$T/$name.tar.gz"
	echo "$name: exit $SURVIVED, $(tail -n 1 "$T/refused")"
	if [ "$SURVIVED" = 0 ]; then
		[ -s "$T/refused" ] || fail "$name: taken without a word"
		[ "$(weight_of "$T/refused.out")" -gt 0 ] || fail "$name: nothing came of the recording"
	fi
	survives "$PROFCPU" postprocess -o "$T/out/$name" "$T/$name.tar.gz"
	find "$T" /tmp -maxdepth 4 -name 'escaped*' -print -quit 2>/dev/null | grep -q . && fail "$name: got out"
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

# Bombs: much of nothing in a small file.
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

# Cut archives. Only where nothing but gzip's own trailer is missing may it be taken without a word.
"$PROFCPU" fold "$T/rec/prof.tar.gz" >"$T/whole" || fail "fold of the archive gave $?"
size=$(stat -c %s "$T/rec/prof.tar.gz")
for at in 1 10 100 $((size / 4)) $((size / 2)) $((size - 10)); do
	head -c "$at" "$T/rec/prof.tar.gz" >"$T/cut.tar.gz"
	survives "$PROFCPU" fold "$T/cut.tar.gz"
	[ "$SURVIVED" != 0 ] || cmp -s "$T/whole" "$T/refused.out" ||
		fail "an archive of $size bytes cut at $at is taken as whole"
done

# Nothing stays behind where things were unpacked.
left=$(find "$TMPDIR" -mindepth 1 | head -n 3)
[ -z "$left" ] || fail "left behind: $left"
