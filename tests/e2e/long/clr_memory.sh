#!/usr/bin/env bash
# The test of JIT code in memory, with programs delivered in the ways that take the compiler minutes.
export CLR_MEMORY_KINDS="single r2r composite single-r2r"
exec bash "$TESTS/e2e/clr_memory.sh"
