/*
 * Ranges of kernel addresses in the order of their records; a later range replaces the parts of
 * earlier ones that it covers. A recording may be hostile and hold records in any order and number,
 * so each change and lookup takes logarithmic time.
 */
#ifndef SYMBOLS_SYMTAB_KERNEL_RANGES_H
#define SYMBOLS_SYMTAB_KERNEL_RANGES_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_RANGES_MAX ((size_t)1 << 20)

struct kernel_range {
	uint64_t start, end; /* start < end */
	uint32_t name;       /* the caller's */
	bool is_symbol;      /* from a KSYMBOL record: the name is a function's */
};

/* Private. */
struct kernel_ranges_node {
	struct kernel_range range;
	uint32_t child[2]; /* lower and higher ranges; in an unused node, [0] is the next unused one
			    */
	uint32_t height;
};

/* A zeroed struct is empty. */
struct kernel_ranges {
	VEC(struct kernel_ranges_node) nodes; /* an AVL tree; node 0 means none */
	uint32_t root;
	uint32_t unused; /* the first unused node */
	size_t n;        /* ranges; none overlap */
};

void kernel_ranges_free(struct kernel_ranges *t);

/* The range that covers addr, or NULL. Valid until the next change. */
const struct kernel_range *kernel_ranges_find(const struct kernel_ranges *t, uint64_t addr);

/*
 * Adds a range over existing ones. Keeps their parts on either side of it. Returns 0, -E2BIG
 * (KERNEL_RANGES_MAX is reached) or -ENOMEM.
 */
int kernel_ranges_add(struct kernel_ranges *t, const struct kernel_range *range);

/* Removes a range that kernel_ranges_find returned. */
void kernel_ranges_remove(struct kernel_ranges *t, const struct kernel_range *range);

#endif
