/*
 * What lies where in the kernel, as records come one after another: of ranges that overlap, the later one holds. Records
 * and look-ups may come in any order and number, as a recording may be anybody's, so each takes logarithmic time.
 */
#ifndef SYMBOLS_KERNEL_RANGES_H
#define SYMBOLS_KERNEL_RANGES_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_RANGES_MAX ((size_t)1 << 20)

struct kernel_range {
	uint64_t start, end; /* start < end */
	uint32_t name; /* the caller's */
	bool is_symbol; /* a KSYMBOL: the name is the function's */
};

/* Private. */
struct kernel_ranges_node {
	struct kernel_range range;
	uint32_t child[2]; /* what lies below and above; of one that is not in use, [0] is the next such */
	uint32_t height;
};

/* A zeroed struct is empty. */
struct kernel_ranges {
	VEC(struct kernel_ranges_node) nodes; /* an AVL tree; node 0 stands for none */
	uint32_t root;
	uint32_t unused; /* the first node that is not in use */
	size_t n; /* ranges, apart from each other */
};

void kernel_ranges_free(struct kernel_ranges *t);

/* The range that covers addr, or NULL. Valid until the next change. */
const struct kernel_range *kernel_ranges_find(const struct kernel_ranges *t, uint64_t addr);

/* Lays a range over what is there; what sticks out of it on either side is kept. 0; -E2BIG: there are
 * KERNEL_RANGES_MAX already; -ENOMEM. */
int kernel_ranges_lay(struct kernel_ranges *t, const struct kernel_range *range);

/* range: as kernel_ranges_find gave it. */
void kernel_ranges_remove(struct kernel_ranges *t, const struct kernel_range *range);

#endif
