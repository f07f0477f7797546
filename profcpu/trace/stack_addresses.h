/* The distinct addresses of the stacks that pass by, until they are looked up. */
#ifndef PROFCPU_TRACE_STACK_ADDRESSES_H
#define PROFCPU_TRACE_STACK_ADDRESSES_H

#include "base/hashmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Further distinct ones are left out until the next clear. */
#define STACK_ADDRESSES_STACKS_MAX ((size_t)1 << 18)
#define STACK_ADDRESSES_MAX ((size_t)1 << 20)

struct stack_addresses {
	struct hashmap stacks; /* hashes */
	struct hashmap seen;   /* addresses */
	VEC(uint64_t) fresh;   /* the same; the caller may sort and reduce them before the clear */
	/* Over a limit, or without memory. The same stack counts again at each event. */
	uint64_t stacks_left_out, left_out;
};

/* Takes a stack: addresses of pointer_bytes (4 or 8) each, innermost first. */
void stack_addresses_take(struct stack_addresses *s, const void *stack, size_t bytes,
			  uint32_t pointer_bytes);

/* Whether a limit is reached, or near. */
bool stack_addresses_are_many(const struct stack_addresses *s);

/* Forgets all but the counts. */
void stack_addresses_clear(struct stack_addresses *s);
void stack_addresses_free(struct stack_addresses *s);

#endif
