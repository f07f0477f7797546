/* File descriptors that this process may still open under its limit (RLIMIT_NOFILE). */
#ifndef BASE_DESCRIPTOR_BUDGET_H
#define BASE_DESCRIPTOR_BUDGET_H

#include <stddef.h>

/* Counts the descriptors that can still be opened; stops at `wanted`. */
size_t descriptor_budget_left(size_t wanted);

/*
 * Checks that `wanted` more descriptors can be opened. 0; -EMFILE after a log_error that names a
 * sufficient limit.
 */
int descriptor_budget_check(size_t wanted);

#endif
