#!/usr/bin/env bash
# Stacks of many kinds of .NET 10 code are those that the program describes, from the sampled instruction to the start of
# the thread. The long tests cover .NET 8 and 9 too, beside perf.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/stacks.sh
. "$TESTS/dotnet/stacks.sh"
need python3
need_sampling
need_release
need_published stacks-net10

start_stacks 10 120
record "$T/rec" --no-download -p "$STACKS_PID" -F 999 -d 6
stop "$STACKS_PID"
"$TESTS/dotnet/whole_stacks" "$T/stacks.log" profcpu="$T/rec/perf_script.out" --examples 1 "${STACKS_ARGUMENTS[@]}" "${STACKS_LEAST[@]}" >"$T/table" || {
	cat "$T/table"
	fail "stacks differ from the program's description"
}
cat "$T/table"
