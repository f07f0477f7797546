#!/usr/bin/env bash
# .NET 8, 9 and 10 services that were started with no variable set have names for all R2R frames and nearly all JIT frames,
# where perf has none, and few with DOTNET_PerfMapEnabled=1. tests/e2e/long has it for all ways of publishing, and for longer.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/names.sh
. "$TESTS/dotnet/names.sh"
need perf python3
need_sampling
need_release
need_published wide-net-net8 wide-net-net9 wide-net-net10 web-api-net10

for publish in wide-net-net8 wide-net-net9 wide-net-net10 web-api-net10; do
	names_begin "$publish" 60
	names_check "$publish" 3
	[ "$publish" != wide-net-net10 ] || names_of_perf "$publish" perf 2
	names_end "$publish"
done
names_begin wide-net-net10 60 DOTNET_PerfMapEnabled=1
names_of_perf wide-net-net10 perf+perfmap 2
names_end wide-net-net10
names_table
[ "$NAMES_FAILED" = 0 ] || fail "$NAMES_FAILED of the above"
