#!/usr/bin/env bash
# The test of native stacks with all programs and flags, 2 s of CPU time each, and perf beside each.
# shellcheck source=tests/e2e/lib.sh
programs="plain-O0 plain-Os plain-fp plain-gcc plain-clang plain-lto-gcc plain-lto-clang plain-static plain-static-pie plain-no-pie plain-ibt"
programs+=" plain-protector plain-avx plain-debug-frame plain-no-hdr plain-gold edges-gcc edges-clang edges-Os edges-fp calls-gcc calls-clang calls-lto-gcc calls-static"
programs+=" libraries-lazy libraries-now libraries-no-plt libraries-ibt libraries-clang libraries-lto libraries-gone libraries-replaced"
programs+=" no-cfi no-cfi-fp exceptions-gcc exceptions-clang exceptions-lto-gcc exceptions-static recursion-10 recursion-100 recursion-100-fp"
programs+=" recursion-1000 recursion-10000 signals-gcc signals-clang signals-static signals-alternate threads vfork coroutines plugins"
export STACKS_PROGRAMS=$programs STACKS_PERF=all STACKS_MS=2000
exec bash "$TESTS/e2e/stacks/whole_native.sh"
