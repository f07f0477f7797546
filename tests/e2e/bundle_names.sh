#!/usr/bin/env bash
# All single-file programs have one build id, their host's: what is found by it, as a copy that perf record has kept, is the host and not
# the program. Its precompiled code has the names of the file that ran.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need readelf
need_published wide-net-net10-single
need_sampling

start_wide wide-net-net10-single 60
record rec --record-only --jit-names=memory -p "$WIDE_PID" -F 499 -d 3
stop "$WIDE_PID"
"$PROFCPU" fold --names full rec >wanted 2>err || fail "fold gave $?: $(cat err)"
at_least "$(share_of wanted ';System[.][A-Za-z.]*[.<]')" 20 || fail "precompiled code of a single-file program has no names"

# perf's copy of another program with the same host: here one without anything behind it.
program=$PUBLISHED/wide-net-net10-single/wide-net
id=$(readelf -n "$program" 2>/dev/null | sed -n 's/.*Build ID: //p')
kept=home/.debug/.build-id/${id:0:2}/${id:2}
mkdir -p "$kept"
head -c "$(readelf -h "$program" | awk '/Start of section headers/ { at = $5 } /Size of section headers/ { each = $5 } /Number of section headers/ { n = $5 }
	END { print at + each * n }')" "$program" >"$kept/elf"
[ "$(stat -c %s "$kept/elf")" -lt "$(($(stat -c %s "$program") / 2))" ] || fail "there is no bundle behind the host"
HOME=$T/home "$PROFCPU" fold --names full rec >folded 2>err || fail "fold gave $?: $(cat err)"
cmp folded wanted || fail "other names where perf has kept another program with the same host"
