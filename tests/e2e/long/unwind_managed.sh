#!/usr/bin/env bash
# tests/e2e/stacks/unwind_managed.sh on all versions of .NET and ten times as long.
# shellcheck source=tests/e2e/lib.sh
export UNWIND_VERSIONS="8 9 10" UNWIND_STEPS=200000 UNWIND_ROUNDS=12 UNWIND_FIRST_ROUNDS=16 UNWIND_THUNKS=3
exec bash "$TESTS/e2e/stacks/unwind_managed.sh"
