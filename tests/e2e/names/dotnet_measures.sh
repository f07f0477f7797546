#!/usr/bin/env bash
# Names of .NET frames: the rows "ci" of tests/dotnet/promises/table that measure.
# May take 1800 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/promises/run.sh
. "$TESTS/dotnet/promises/run.sh"
need python3
need_release
promises_run ci measures
