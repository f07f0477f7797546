#!/usr/bin/env bash
# Every way of publishing on .NET 8, 9 and 10, recorded for 30 s beside perf with and without DOTNET_PerfMapEnabled=1.
# NAMES_PUBLISHES: only these.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/names.sh
. "$TESTS/dotnet/names.sh"
need perf python3
need_sampling
need_release
all=()
for version in 10 9 8; do
	for kind in '' -r2r -composite -single -single-r2r; do
		all+=("wide-net-net$version$kind")
	done
	all+=("web-api-net$version" "web-api-net$version-composite" "web-api-net$version-single")
done
# shellcheck disable=SC2206 # words are what is wanted
[ -z "${NAMES_PUBLISHES:-}" ] || all=($NAMES_PUBLISHES)
need_published "${all[@]}"

export NAMES_LEAST=99.9
for publish in "${all[@]}"; do
	names_begin "$publish" 300
	names_check "$publish" 30
	names_of_perf "$publish" perf 10
	names_end "$publish"
	names_begin "$publish" 120 DOTNET_PerfMapEnabled=1
	names_of_perf "$publish" perf+perfmap 10
	names_end "$publish"
done
names_table
[ "$NAMES_FAILED" = 0 ] || fail "$NAMES_FAILED of the above"
