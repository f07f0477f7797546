#!/usr/bin/env bash
# On a kernel without openat2, or under a filter that refuses it, the same files are opened and no link leads out of a root.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
for error in 38 1; do # ENOSYS, EPERM
	for test in image opener; do
		"$BUILD/helpers/seccomp_exec" 437 "$error" "$BUILD/unit/test_$test" >"$T/out" 2>&1 || {
			tail -n 20 "$T/out"
			fail "test_$test, openat2 giving error $error"
		}
	done
done
