#include "base/radix_sort.h"

#include "base/bigmem.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

static int bits_of(uint64_t x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

/* Computes the place of the next key with each digit. False: all keys share the digit at shift. */
static bool place_digits(const uint64_t *keys, uint32_t n, int shift, uint32_t *places)
{
	uint32_t at = 0;

	for (uint32_t d = 0; d < DIGITS; d++)
		places[d] = 0;
	for (uint32_t i = 0; i < n; i++)
		places[(keys[i] >> shift) & (DIGITS - 1)]++;
	if (places[(keys[0] >> shift) & (DIGITS - 1)] == n)
		return false;
	for (uint32_t d = 0; d < DIGITS; d++) {
		uint32_t here = places[d];

		places[d] = at;
		at += here;
	}
	return true;
}

/*
 * The usual case: an address minus the lowest address fits with its index into 64 bits. Sorts keys;
 * `other` has the same size and is scratch space.
 */
static void sort_packed(uint64_t *keys, uint64_t *other, uint32_t n, int id_bits, int bits,
			uint32_t *ret_ids)
{
	uint32_t places[DIGITS];

	for (int shift = id_bits; shift < bits; shift += DIGIT_BITS) {
		if (!place_digits(keys, n, shift, places))
			continue;
		for (uint32_t i = 0; i < n; i++)
			other[places[(keys[i] >> shift) & (DIGITS - 1)]++] = keys[i];
		uint64_t *was = keys;

		keys = other;
		other = was;
	}
	for (uint32_t i = 0; i < n; i++)
		ret_ids[i] = (uint32_t)(keys[i] & (((uint64_t)1 << id_bits) - 1));
}

/* Addresses too far apart to pack: sorts the indices by the addresses, digit by digit. */
static void sort_wide(const uint64_t *addrs, uint32_t *ids, uint32_t *other, uint32_t n)
{
	uint32_t places[DIGITS], *from = ids, *to = other;

	for (uint32_t i = 0; i < n; i++)
		ids[i] = i;
	for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!place_digits(addrs, n, shift, places))
			continue;
		for (uint32_t i = 0; i < n; i++)
			to[places[(addrs[from[i]] >> shift) & (DIGITS - 1)]++] = from[i];
		uint32_t *was = from;

		from = to;
		to = was;
	}
	for (uint32_t i = 0; from != ids && i < n; i++)
		ids[i] = from[i];
}

int radix_sort(uint64_t *addrs, uint32_t n, uint32_t *ret_ids)
{
	uint64_t lowest = UINT64_MAX, highest = 0;
	bool sorted = true;

	for (uint32_t i = 0; i < n; i++) {
		lowest = addrs[i] < lowest ? addrs[i] : lowest;
		sorted &= addrs[i] >= highest;
		highest = addrs[i] > highest ? addrs[i] : highest;
	}
	if (sorted) {
		for (uint32_t i = 0; i < n; i++)
			ret_ids[i] = i;
		return 0;
	}
	AUTO_FREE uint64_t *other = bigmem_alloc(n, sizeof(*other));
	int id_bits = bits_of(n - 1), bits = bits_of(highest - lowest) + id_bits;

	if (!other)
		return -ENOMEM;
	if (bits > 64) {
		sort_wide(addrs, ret_ids, (uint32_t *)other, n);
		return 0;
	}
	for (uint32_t i = 0; i < n; i++)
		addrs[i] = (addrs[i] - lowest) << id_bits | i;
	sort_packed(addrs, other, n, id_bits, bits, ret_ids);
	return 0;
}
