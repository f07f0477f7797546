#!/usr/bin/env bash
# A perf.data cut anywhere or with changed bytes, and other files: no crash, no hang, one clear message, and readable
# parts are kept.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling

start_shares 30
record "$T/rec" -p "$SHARES_PID" -F 499 -d 1
stop "$SHARES_PID"
data=$T/rec/perf.data
size=$(stat -c %s "$data")
"$PROFCPU" fold "$data" >"$T/whole" || fail "fold of the uncut perf.data gave $?"
all=$(weight_of "$T/whole")
[ "$all" -gt 0 ] || fail "the recording is empty"

# Cut: every 8 bytes in the header, then at 40 places in the whole file.
kept=0
for at in 0 1 {8..112..8} $(seq 120 $((size / 40 + 1)) $((size - 1))) $((size - 1)); do
	head -c "$at" "$data" >"$T/cut"
	survives "$PROFCPU" fold "$T/cut"
	w=$(weight_of "$T/refused.out")
	[ "$w" -le "$all" ] || fail "more weight in the first $at bytes than in the whole"
	if [ "$at" -lt $((size / 2)) ] && [ "$SURVIVED" = 0 ]; then
		fail "a perf.data of $size bytes cut at $at is accepted without a message"
	fi
	[ "$w" -eq 0 ] || kept=$((kept + 1))
done
echo "$kept cut files have readable samples"
[ "$kept" -ge 15 ] || fail "only $kept cut files have readable samples"

# A file cut in half still gives all outputs, with a nonzero status.
mkdir "$T/half"
cp -r "$T/rec/symbols" "$T/rec/manifest.json" "$T/half" 2>/dev/null
head -c $((size / 2)) "$data" >"$T/half/perf.data"
survives "$PROFCPU" postprocess "$T/half"
[ "$SURVIVED" = 1 ] || fail "postprocess of half a perf.data gave $SURVIVED"
for file in flamegraph.svg folded_stacks.out perf_script.out; do
	[ -s "$T/half/$file" ] || fail "no $file from the readable half"
done

# Up to 8 changed bytes each time, the same ones in each run. Sanitizers detect most faults.
changes=150
! is_release || changes=50
RANDOM=1
for ((i = 0; i < changes; i++)); do
	cp "$data" "$T/changed"
	for ((n = RANDOM % 8; n >= 0; n--)); do
		# Half of them in the first 512 bytes, which contain the header.
		at=$(((RANDOM << 15 | RANDOM) % (n % 2 ? 512 : size)))
		printf '%b' "\\x$(printf %02x $((RANDOM % 256)))" |
			dd of="$T/changed" bs=1 seek="$at" conv=notrunc status=none
	done
	survives "$PROFCPU" fold "$T/changed"
done

# A header with too many events: the message names them. Byte 32 has the size of their attributes.
cp "$data" "$T/changed"
printf '\377\377\377' | dd of="$T/changed" bs=1 seek=33 conv=notrunc status=none
refuses "$PROFCPU" fold "$T/changed"
grep -q 'too many events' "$T/refused" || fail "$(cat "$T/refused")"

# Other kinds of files.
head -c 100000 /dev/urandom >"$T/noise"
printf 'PERFILE2' >"$T/magic"
: >"$T/empty"
printf 'int main(void)\n{\n\treturn 0;\n}\n' >"$T/source"
mkdir "$T/nothing"
for what in noise magic empty source nothing missing; do
	refuses "$PROFCPU" fold "$T/$what"
	refuses "$PROFCPU" postprocess "$T/$what"
	refuses "$PROFCPU" flamegraph "$T/$what"
done
ln -s /dev/zero "$T/endless"
refuses "$PROFCPU" fold "$T/endless"

# Pipes without a writer in place of files: profcpu does not block.
mkdir "$T/pipes"
mkfifo "$T/pipes/perf.data"
refuses "$PROFCPU" fold "$T/pipes"
grep -q 'not a regular file' "$T/refused" || fail "$(cat "$T/refused")"
rm "$T/pipes/perf.data"
cp "$data" "$T/pipes/perf.data"
mkdir "$T/pipes/symbols"
mkfifo "$T/pipes/manifest.json" "$T/pipes/symbols/names"
timeout 20 "$PROFCPU" fold "$T/pipes" >"$T/out" 2>"$T/err" || fail "pipes beside perf.data: exit $?"
[ -s "$T/out" ] || fail "no stacks with pipes beside perf.data"
