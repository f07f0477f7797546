/*
 * Counts the file descriptors that this process may still open under its limit (RLIMIT_NOFILE), and
 * raises the limit. Modules that keep many files open leave some for others; each names its reserve
 * (*_RESERVE*, *_SPARE*).
 */
#ifndef BASE_DESCRIPTOR_BUDGET_H
#define BASE_DESCRIPTOR_BUDGET_H

#include <stddef.h>

/* Raises the limit as far as permitted. Returns it. */
size_t descriptor_budget_raise(void);

/* Returns how many descriptor numbers above fd the limit permits. */
size_t descriptor_budget_above(int fd);

/* Counts the descriptors that can still be opened; stops at `wanted`. */
size_t descriptor_budget_left(size_t wanted);

/*
 * Checks that `wanted` more descriptors can be opened. 0; -EMFILE after a log_error that names a
 * sufficient limit.
 */
int descriptor_budget_check(size_t wanted);

#endif
