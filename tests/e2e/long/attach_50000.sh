#!/usr/bin/env bash
# The test of a process with 50,000 methods, by memory on all versions whose layout is known.
export ATTACH_BY_MEMORY="10 9 8"
exec bash "$TESTS/e2e/attach_50000.sh"
