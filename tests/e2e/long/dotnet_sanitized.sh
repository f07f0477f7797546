#!/usr/bin/env bash
# Names of .NET frames, under sanitizers: the rows "ci" of tests/dotnet/promises/table that names/dotnet leaves out there to
# save time. Run it with `make check-long CONFIG=asan`.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
# shellcheck source=tests/dotnet/promises/run.sh
. "$TESTS/dotnet/promises/run.sh"
need python3
if is_release; then
	echo "is for sanitizer builds only"
	exit 78
fi
# shellcheck disable=SC2034 # for promises_applies
PROMISES_SANITIZED="alone release"
promises_run ci beside alone
