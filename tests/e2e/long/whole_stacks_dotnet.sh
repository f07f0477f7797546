#!/usr/bin/env bash
# Stacks of many kinds of code on .NET 8, 9 and 10 are those that the program describes; perf's are printed beside them.
# Stacks of the web API reach the start of their thread.
# STACKS_VERSIONS: only these versions.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/stacks.sh
. "$TESTS/dotnet/stacks.sh"
need perf python3
need_sampling
need_release
versions=${STACKS_VERSIONS:-10 9 8}
for version in $versions; do
	need_published "stacks-net$version" "web-api-net$version"
done

failed=0
for version in $versions; do
	start_stacks "$version" 300
	record "$T/rec" --no-download -p "$STACKS_PID" -F 999 -d 30
	stop "$STACKS_PID"
	mv "$T/stacks.log" "$T/described"
	start_stacks "$version" 300 "${PERF_NAMES[@]}"
	perf_g "$STACKS_PID" 10
	perf_dwarf "$STACKS_PID" 10
	stop "$STACKS_PID"
	cat "$T/stacks.log" >>"$T/described"
	echo ".NET $version:"
	"$TESTS/dotnet/whole_stacks" "$T/described" profcpu="$T/rec/perf_script.out" perf-g="$T/g.out" perf-dwarf="$T/dwarf.txt" --examples 2 \
		"${STACKS_ARGUMENTS[@]}" "${STACKS_LEAST[@]}" || failed=1
	rm -rf "$T/rec"

	# shellcheck disable=SC2034 # for start_web_api
	API=("$PUBLISHED/web-api-net$version/web-api")
	start_web_api
	start_load 60 / /cpu /wait
	wait_for_cpu "$API_PID" 10000
	record "$T/rec" --no-download -p "$API_PID" -F 999 -d 15
	perf_g "$API_PID" 5
	stop "$LOAD_PID"
	stop "$API_PID"
	echo "the web API on .NET $version:"
	echo 'LEAF others Cpu::SumOfSines libm' >"$T/described"
	"$TESTS/dotnet/whole_stacks" "$T/described" profcpu="$T/rec/perf_script.out" perf-g="$T/g.out" --examples 5 --least "start=$STACKS_START" || failed=1
	# Frames that burn CPU are present, and frames that wait are not.
	at_least "$(share_of "$T/rec/folded_stacks.out" 'Cpu.Burn')" 30 || failed=1
	at_least 1 "$(share_of "$T/rec/folded_stacks.out" 'Waiting[.]')" || failed=1
	rm -rf "$T/rec"
done
[ "$failed" = 0 ] || fail "stacks differ from the program's description"
