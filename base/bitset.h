/*
 * An ordered set of numbers below n. Finding the next or previous number takes about log64(n)
 * steps.
 */
#ifndef BASE_BITSET_H
#define BASE_BITSET_H

#include <stddef.h>
#include <stdint.h>

#define BITSET_LEVELS 6 /* 64^6 covers all 32-bit numbers */
#define BITSET_NONE UINT32_MAX

/* A zeroed struct may only be passed to bitset_free. */
struct bitset {
	/* A bit of a level is set if a word of the level below is not 0. */
	uint64_t *levels[BITSET_LEVELS];
	size_t nlevels;
	uint32_t n;
};

/* Makes an empty set of numbers below n. 0 or -ENOMEM. */
int bitset_init(struct bitset *s, uint32_t n);
void bitset_free(struct bitset *s);

void bitset_add(struct bitset *s, uint32_t x);
void bitset_remove(struct bitset *s, uint32_t x);

/*
 * bitset_next: the least number >= x; bitset_prev: the greatest number <= x. BITSET_NONE: no such
 * number. x may have any value.
 */
uint32_t bitset_next(const struct bitset *s, uint32_t x);
uint32_t bitset_prev(const struct bitset *s, uint32_t x);

#endif
