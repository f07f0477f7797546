#!/usr/bin/env bash
# Deep stacks of long names do not make outputs hundreds of times as large as perf.data; usual names are never cut.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
[ "$(uname -m)" = x86_64 ] || skip "needs x86-64, because the helper makes code for it"

# deep NAME: records its program with stacks of 700 frames, and checks that they are deep.
deep() {
	record "$1" -F 199 -- "$BUILD/helpers/deep_names" 1 "$2" 700
	mapfile -t -O ${#T_FILES[@]} T_FILES < <(grep -ao '/tmp/perf-[0-9]*\.map' "$1/perf_script.out" | sort -u)
	# Their weight counts: a sampling period near that of a call meets only some of the 50 stacks.
	at_least "$(awk -F ';' '{ n = $0; sub(/.* /, "", n); all += n; deep += NF > 690 ? n : 0 } END { print 100 * deep / all }' "$1/folded_stacks.out")" 80 ||
		fail "few deep stacks: $(cut -c -200 "$1/folded_stacks.out")"
}
size() { stat -c %s "$1"; }

deep usual 256
! grep -q 'are cut' collect.log || fail "usual names are cut: $(cat collect.log)"
[ "$(report_number usual cut_names)" = 0 ] || fail "report.json: $(report_number usual cut_names) cut names"

deep long 4000
limit=$((16 * 1024 * 1024 + 80 * $(size long/perf.data)))
for file in perf_script.out folded_stacks.out flamegraph.svg; do
	[ "$(size long/$file)" -lt $limit ] || fail "$file has $(size long/$file) bytes, perf.data $(size long/perf.data)"
done
grep -q 'names have more than [0-9]* bytes and are cut.*would make outputs too large' collect.log || fail "cut names are not reported: $(cat collect.log)"
[ "$(report_number long cut_names)" = 50 ] || fail "report.json: $(report_number long cut_names) cut names"
# The names stay different, and the text folds to the same stacks.
[ "$(grep -o 'f[0-9][0-9]_[a-z]*\.\.\.[0-9a-f]\{8\}' long/folded_stacks.out | sort -u | wc -l)" = 50 ] || fail "not 50 names"
"$PROFCPU" fold --names perf long >long.perf 2>fold.log || fail "fold: $(cat fold.log)"
"$PROFCPU" fold - <long/perf_script.out >long.text 2>fold.log || fail "fold of text: $(cat fold.log)"
cmp long.perf long.text || fail "the text folds to other stacks"
[ "$(size long.perf)" -lt $limit ] || fail "fold prints $(size long.perf) bytes"
