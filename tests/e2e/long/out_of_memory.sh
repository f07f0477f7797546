#!/usr/bin/env bash
# The out-of-memory test with inlined functions and lines.
# Runs beside others.
export OUT_OF_MEMORY_COMMANDS="fold text inline inlines postprocess"
exec bash "$TESTS/e2e/hostile/out_of_memory.sh"
