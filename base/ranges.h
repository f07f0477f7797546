/*
 * Address ranges that were written one after another. The later of two ranges replaces the earlier
 * one where they overlap.
 */
#ifndef BASE_RANGES_H
#define BASE_RANGES_H

#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX ((size_t)32 << 20)

/*
 * A range; bytes > 0, and its end is at most 2^64. In an array of ranges, a higher index means
 * written later.
 */
struct range {
	uint64_t start;
	uint32_t bytes;
	uint32_t tag; /* for the caller's use */
};

/* A part of ranges[id] that no later range covers. */
struct range_piece {
	uint64_t start;
	uint32_t bytes;
	uint32_t id;
};

struct range_pieces {
	VEC(struct range_piece) pieces; /* sorted by address; never overlap */
	size_t covered;                 /* number of ranges that are covered completely */
};

/*
 * Cuts n ranges into pieces; n is at most RANGES_MAX. O(n) if none overlap, else O(n log n). 0 or
 * -ENOMEM.
 */
int ranges_split(const struct range *ranges, size_t n, struct range_pieces *ret_pieces);
void ranges_free(struct range_pieces *p);

/* Returns the piece that contains addr, or NULL. */
const struct range_piece *ranges_find(const struct range_pieces *p, uint64_t addr);

#endif
