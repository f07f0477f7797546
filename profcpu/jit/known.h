/* The address ranges of a process's known methods. Other executable memory may hold stubs. */
#ifndef PROFCPU_JIT_KNOWN_H
#define PROFCPU_JIT_KNOWN_H

#include "base/ranges.h"
#include "base/share.h"

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct is empty. */
struct jit_known {
	VEC(struct range) methods;
	struct range_pieces pieces; /* of the flushed methods */
	bool over;                  /* over a limit: all addresses count as known */
	struct share *memory;       /* borrowed: counts the methods; NULL: no limit */
	uint64_t counted;           /* bytes in it */
};

void jit_known_free(struct jit_known *k);
void jit_known_add(struct jit_known *k, uint64_t start, uint32_t bytes);

/* Makes jit_known_find_gap see the methods added so far. */
void jit_known_flush(struct jit_known *k);

/* Finds the first part of [start, end) that no method covers. False: there is none. */
bool jit_known_find_gap(const struct jit_known *k, uint64_t start, uint64_t end,
			uint64_t *ret_start, uint64_t *ret_end);

#endif
