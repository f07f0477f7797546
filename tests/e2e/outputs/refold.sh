#!/usr/bin/env bash
# Folding perf_script.out of a recording gives folded_stacks.out, byte for byte; so does folding perf.data.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling

start_shares 30 -t 3 -i 0
record "$T/rec" -p "$SHARES_PID" -F 499 -d 3
cd "$T/rec" || exit 1
"$PROFCPU" fold perf_script.out >"$T/from_text" || fail "fold perf_script.out gave $?"
cmp folded_stacks.out "$T/from_text" || fail "stacks of the text differ"
"$PROFCPU" fold - <perf_script.out >"$T/from_stdin" || fail "fold - gave $?"
cmp folded_stacks.out "$T/from_stdin" || fail "stacks of the text on stdin differ"
"$PROFCPU" fold . >"$T/from_recording" || fail "fold of the recording gave $?"
cmp folded_stacks.out "$T/from_recording" || fail "stacks of the recording differ"
"$PROFCPU" fold perf.data >"$T/from_data" || fail "fold perf.data gave $?"
cmp folded_stacks.out "$T/from_data" || fail "stacks of perf.data differ"
[ "$(weight_of folded_stacks.out)" -gt 0 ] || fail "folded_stacks.out is empty"
