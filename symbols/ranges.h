/* Ranges of addresses that were written one after another: of those that overlap, the later one holds. */
#ifndef SYMBOLS_RANGES_H
#define SYMBOLS_RANGES_H

#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX ((size_t)32 << 20)

/* bytes > 0 from start on, not past 2^64. The index in an array of these says which was written later. */
struct range {
	uint64_t start;
	uint32_t bytes;
	uint32_t tag; /* the caller's */
};

/* A part of ranges[id] over which nothing later was written. */
struct range_piece {
	uint64_t start;
	uint32_t bytes;
	uint32_t id;
};

struct range_pieces {
	VEC(struct range_piece) pieces; /* by address, apart from each other */
	size_t covered; /* ranges of which nothing is left */
};

/* Cuts n ranges, at most RANGES_MAX, into pieces. O(n) where none overlap, else O(n log n). 0 or -ENOMEM, *ret untouched. */
int ranges_cut(const struct range *ranges, size_t n, struct range_pieces *ret_pieces);
void ranges_free(struct range_pieces *p);

/* The piece that holds addr, or NULL. */
const struct range_piece *ranges_find(const struct range_pieces *p, uint64_t addr);

#endif
