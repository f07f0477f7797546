#!/usr/bin/env bash
# Idle threads of the web API count as idle on .NET 8, 9 and 10; waits of its routes do not.
# IDLE_VERSIONS: only these versions.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/idle.sh
. "$TESTS/dotnet/idle.sh"
need_sampling
need_release
versions=${IDLE_VERSIONS:-10 9 8}
# shellcheck disable=SC2046,SC2086 # several words
need_published $(printf 'web-api-net%s ' $versions)

for version in $versions; do
	API=("$PUBLISHED/web-api-net$version/web-api")
	start_web_api DOTNET_gcServer=1
	start load "$BUILD/examples/load" -c 2 -d 12 "$API_PORT" /cpu /wait
	load=$STARTED
	sleep 2
	record "rec$version" --off-cpu -d 8 -p "$API_PID"
	wait "$load" || fail "the load got no responses: $(cat load.log)"
	echo ".NET $version: $(grep '^off-CPU' collect.log)"
	check_idle "rec$version/offcpu.folded" web-api
	awk -v us="$(weight_of "rec$version/offcpu.folded" BlockOnDelay)" 'BEGIN { exit !(us > 2 * 8e6 * 0.9) }' || fail "two connections to /wait do not wait all the time"
	[ "$(weight_of "rec$version/offcpu.folded" '^[^;]* ?$')" -lt 100000 ] || fail "waits without a stack"
	stop "$API_PID"
done
