/* A set of small numbers in their order: what comes before and after a number takes a step per 64-fold of the range. */
#ifndef BASE_BITSET_H
#define BASE_BITSET_H

#include <stddef.h>
#include <stdint.h>

#define BITSET_LEVELS 6 /* 64^6 covers all of 32 bits */
#define BITSET_NONE UINT32_MAX

/* A zeroed struct is fit for bitset_free only. */
struct bitset {
	uint64_t *levels[BITSET_LEVELS]; /* a bit of a level says whether a word of the one below it is not 0 */
	size_t nlevels;
	uint32_t n;
};

/* An empty set of numbers below n. 0 or -ENOMEM. */
int bitset_init(struct bitset *s, uint32_t n);
void bitset_free(struct bitset *s);

void bitset_put(struct bitset *s, uint32_t x);
void bitset_take(struct bitset *s, uint32_t x);

/* The least number from x on, the greatest one up to x; BITSET_NONE: there is none. x may be anything. */
uint32_t bitset_next(const struct bitset *s, uint32_t x);
uint32_t bitset_last(const struct bitset *s, uint32_t x);

#endif
