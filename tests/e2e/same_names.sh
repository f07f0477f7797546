#!/usr/bin/env bash
# One method has one name, whichever way it was learned: perf map, jitdump, rundown and the runtime's memory, on at least 5,000
# methods that .NET compiled (without precompiled code, so that the whole framework is among them). Where a perf map is damaged by
# the runtime the others still have the name.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_release
need_published wide-net-net10 wide-net-net8

# compare VERSION [ARGUMENT...]: of tests/dotnet/same_names, beside jitdump and rundown.
compare() {
	local version=$1 dir=$T/$1
	shift
	mkdir "$dir"
	# Stubs are in no jitdump that goes on to its end (a fault of .NET 10), and are no methods.
	WIDE_ENV=(DOTNET_ReadyToRun=0 DOTNET_PerfMapEnabled=1 DOTNET_PerfMapStubGranularity=4 "DOTNET_PerfMapJitDumpPath=$dir")
	start_wide "wide-net-net$version" 4 --linger 300
	wait_for 120 grep -q '^quiet' "$T/wide.log" || fail "wide-net does not come to rest: $(cat "$T/wide.log")"
	sleep 1 # what waits to be compiled at a higher tier
	"$BUILD/helpers/jit_names" rundown "$WIDE_PID" "$dir/rundown" >"$T/out" 2>&1 || fail "rundown: $(cat "$T/out")"
	[ "$version" != 10 ] || "$BUILD/helpers/clr_methods" "$WIDE_PID" >"$dir/memory" 2>"$T/out" || fail "memory: $(cat "$T/out")"
	# Now, as the end of the process compiles more.
	cp "$dir/jit-$WIDE_PID.dump" "$dir/jitdump" && cp "$dir/perf-$WIDE_PID.map" "$dir/map" || fail "the runtime wrote no jitdump or map"
	stop "$WIDE_PID"
	echo ".NET $version"
	"$TESTS/dotnet/same_names" "$BUILD/helpers/canonical" "$dir/jitdump" --map "$dir/map" --rundown "$dir/rundown" "$@" ||
		fail ".NET $version: names differ, or there are too few"
}
compare 10 --memory "$T/10/memory"
compare 8
