/* Where a process's methods are, out of what was told of them: what else is executable may be stubs. */
#ifndef PROFCPU_JIT_KNOWN_H
#define PROFCPU_JIT_KNOWN_H

#include "symbols/ranges.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is empty. */
struct jit_known {
	VEC(struct range) methods;
	struct range_pieces pieces; /* of those that are settled */
	bool over; /* more than can be kept: then all is known */
};

void jit_known_free(struct jit_known *k);
void jit_known_add(struct jit_known *k, uint64_t start, uint32_t bytes);

/* What was added counts from now on. */
void jit_known_settle(struct jit_known *k);

/* The part of [start, end) that comes first and that no method covers. False: there is none. */
bool jit_known_gap(const struct jit_known *k, uint64_t start, uint64_t end, uint64_t *ret_start, uint64_t *ret_end);

#endif
