/* Ranges of addresses that were written one after another: of those that overlap, the later one holds. */
#ifndef SYMBOLS_RANGES_H
#define SYMBOLS_RANGES_H

#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

/* [start, end), end > start. The index in an array of these says which was written later. */
struct range {
	uint64_t start, end;
};

/* A part of ranges[id] over which nothing later was written. */
struct range_piece {
	uint64_t start, end;
	uint32_t id;
	uint32_t pad;
};

struct range_pieces {
	VEC(struct range_piece) pieces; /* by address, apart from each other */
	size_t covered; /* ranges of which nothing is left */
};

/* Cuts n ranges (below 2^32) into pieces. O(n) where none overlap, else O(n log n). 0 or -ENOMEM, *ret untouched. */
int ranges_cut(const struct range *ranges, size_t n, struct range_pieces *ret_pieces);

/* The piece that holds addr, or NULL. */
const struct range_piece *ranges_find(const struct range_pieces *p, uint64_t addr);

#endif
