#!/usr/bin/env bash
# Names of .NET frames: the rows "ci" of tests/dotnet/promises/table that measure nothing. The table has a line for each
# promise.
# May take 1800 s.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/promises/run.sh
. "$TESTS/dotnet/promises/run.sh"
need python3
promises_run ci beside alone
