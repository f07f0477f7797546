#include "symbols/keysort.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define SMALL 64

static void insertion_sort(struct keysort_key *keys, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct keysort_key k = keys[i];
		size_t at = i;

		for (; at && keys[at - 1].addr > k.addr; at--)
			keys[at] = keys[at - 1];
		keys[at] = k;
	}
}

/* One pass of a radix sort, from src to dst by the digit at shift. */
static void scatter(const struct keysort_key *src, struct keysort_key *dst, size_t n, int shift)
{
	size_t counts[DIGITS] = {0}, at = 0;

	for (size_t i = 0; i < n; i++)
		counts[(src[i].addr >> shift) & (DIGITS - 1)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t here = counts[d];

		counts[d] = at;
		at += here;
	}
	for (size_t i = 0; i < n; i++)
		dst[counts[(src[i].addr >> shift) & (DIGITS - 1)]++] = src[i];
}

int keysort(struct keysort_key *keys, size_t n)
{
	uint64_t differing = 0;
	bool sorted = true;

	for (size_t i = 1; i < n; i++) {
		differing |= keys[i].addr ^ keys[0].addr;
		sorted &= keys[i - 1].addr <= keys[i].addr;
	}
	if (sorted)
		return 0;
	if (n <= SMALL) {
		insertion_sort(keys, n);
		return 0;
	}
	AUTO_FREE struct keysort_key *other = reallocarray(NULL, n, sizeof(*other));
	struct keysort_key *src = keys, *dst = other;

	if (!other)
		return -ENOMEM;
	for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!((differing >> shift) & (DIGITS - 1)))
			continue;
		scatter(src, dst, n, shift);
		struct keysort_key *was = src;

		src = dst;
		dst = was;
	}
	if (src != keys)
		memcpy(keys, src, n * sizeof(*keys));
	return 0;
}
