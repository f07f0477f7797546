#!/usr/bin/env bash
# The benchmark ends with one clear line if the load that it measures does not start, or ends too early.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need perf

# ends_with PATTERN: the benchmark fails within 60 s, and its last line matches.
ends_with() {
	local status=0
	PATH=$T/bin:$PATH QUICK=1 BENCH_START_S=3 timeout -k 5 60 "$TESTS/bench/run" "$BUILD" speed >out 2>err || status=$?
	[ "$status" = 1 ] || fail "exit $status: $(cat out err)"
	tail -n 1 out | grep -qE "$1" || fail "$(tail -n 3 out err)"
}

mkdir bin
for command in make dotnet; do
	printf '#!/bin/sh\ncase $1 in *.dll) echo from the web API; %s;; esac\n' 'exec sleep 300' >bin/$command
	chmod +x bin/$command
done
ends_with '^service: the load did not start within 3 s: from the web API$'
sed -i 's/exec sleep 300/exit 1/' bin/dotnet
ends_with '^service: the load ended: from the web API$'
