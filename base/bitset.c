#include "base/bitset.h"

#include <errno.h>
#include <stdlib.h>

int bitset_init(struct bitset *s, uint32_t n)
{
	size_t words = n;

	*s = (struct bitset){.n = n};
	do {
		words = (words + 63) / 64;
		s->levels[s->nlevels] = calloc(words ? words : 1, sizeof(uint64_t));
		if (!s->levels[s->nlevels]) {
			bitset_free(s);
			return -ENOMEM;
		}
		s->nlevels++;
	} while (words > 1);
	return 0;
}

void bitset_free(struct bitset *s)
{
	for (size_t i = 0; i < BITSET_LEVELS; i++)
		free(s->levels[i]);
	*s = (struct bitset){0};
}

void bitset_add(struct bitset *s, uint32_t x)
{
	for (size_t i = 0; i < s->nlevels; i++, x /= 64)
		s->levels[i][x / 64] |= 1ULL << x % 64;
}

void bitset_remove(struct bitset *s, uint32_t x)
{
	for (size_t i = 0; i < s->nlevels; i++, x /= 64) {
		s->levels[i][x / 64] &= ~(1ULL << x % 64);
		if (s->levels[i][x / 64])
			break;
	}
}

/* Descends from bit x of a level to the least number of the set below it. */
static uint32_t bitset_least(const struct bitset *s, size_t level, uint32_t x)
{
	while (level--)
		x = x * 64 + (uint32_t)__builtin_ctzll(s->levels[level][x]);
	return x;
}

static uint32_t bitset_greatest(const struct bitset *s, size_t level, uint32_t x)
{
	while (level--)
		x = x * 64 + 63 - (uint32_t)__builtin_clzll(s->levels[level][x]);
	return x;
}

uint32_t bitset_next(const struct bitset *s, uint32_t x)
{
	uint32_t end = s->n;

	for (size_t i = 0; i < s->nlevels && x < end; i++) {
		uint64_t word = s->levels[i][x / 64] >> x % 64;

		if (word)
			return bitset_least(s, i, x + (uint32_t)__builtin_ctzll(word));
		x = x / 64 + 1;
		end = end / 64 + !!(end % 64);
	}
	return BITSET_NONE;
}

uint32_t bitset_prev(const struct bitset *s, uint32_t x)
{
	if (!s->n)
		return BITSET_NONE;
	if (x >= s->n)
		x = s->n - 1;
	for (size_t i = 0; i < s->nlevels; i++) {
		uint64_t word = s->levels[i][x / 64] << (63 - x % 64);

		if (word)
			return bitset_greatest(s, i, x - (uint32_t)__builtin_clzll(word));
		if (x < 64)
			break;
		x = x / 64 - 1;
	}
	return BITSET_NONE;
}
