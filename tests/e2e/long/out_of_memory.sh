#!/usr/bin/env bash
# The test of memory that runs out, with inlined functions and lines.
export OUT_OF_MEMORY_COMMANDS="fold text inline inlines postprocess"
exec bash "$TESTS/e2e/out_of_memory.sh"
