#!/usr/bin/env bash
# The test of native stacks with 32-bit programs, which libdw unwinds afterwards.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_32_bit
programs="plain-O0 plain-gcc plain-clang plain-fp plain-static edges-gcc calls-gcc libraries-lazy exceptions-gcc recursion-100"
programs+=" signals-gcc threads vfork coroutines"
STACKS_PROGRAMS=$(printf '%s-m32 ' $programs)
export STACKS_PROGRAMS STACKS_PERF=none STACKS_MS=${STACKS_MS:-600} STACKS_CHANCE=yes
# With few samples, a share may be too small once by chance, but not twice.
bash "$TESTS/e2e/stacks/whole_native.sh" || bash "$TESTS/e2e/stacks/whole_native.sh"
