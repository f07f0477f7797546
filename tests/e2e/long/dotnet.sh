#!/usr/bin/env bash
# Names of .NET frames: the rows "long" of tests/dotnet/promises/table, one for each promise.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/promises/run.sh
. "$TESTS/dotnet/promises/run.sh"
need python3
promises_run long
