#!/usr/bin/env bash
# Without openat2 (old kernel) or under a filter that refuses it, the same files open and no link leads out of a root.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
for error in 38 1; do # ENOSYS, EPERM
	for test in symbols/symtab/test_image container/test_opener; do
		"$BUILD/helpers/seccomp_exec" 437 "$error" "$BUILD/unit/$test" >"$T/out" 2>&1 || {
			tail -n 20 "$T/out"
			fail "$test fails if openat2 fails with error $error"
		}
	done
done
