#!/usr/bin/env bash
# Names of .NET frames: the rows "ci" of tests/dotnet/promises/table that measure, or that record the whole machine.
# May take 1800 s.
# Alone in release builds.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/promises/run.sh
. "$TESTS/dotnet/promises/run.sh"
need python3
promises_run ci alone
