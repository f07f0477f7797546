/*
 * Hash functions for tables in memory. They differ in each process, so that nobody can prepare
 * input that collides. Therefore such a hash is never written to disk, and no output is in the
 * order of hashes.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint64_t hash_secret[2];

/* Mixes two 64-bit words by a 128-bit product; takes 2 to 3 ns. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)(a ^ hash_secret[0]) * (b ^ hash_secret[1]);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_u64(uint64_t x)
{
	return hash_mix(x, 0x2545f4914f6cdd1dULL);
}

static inline uint64_t hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = len, w;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&w, p, 8);
		h = hash_mix(h, w);
	}
	w = 0;
	if (len)
		memcpy(&w, p, len);
	return hash_mix(h, w ^ 0xa0761d6478bd642fULL);
}

/* FNV-1a, equal in each process: tells texts apart in outputs. Not for tables. */
static inline uint32_t hash_stable(const char *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3ULL;
	return (uint32_t)(h ^ h >> 32);
}

/* Hashes an array of words, for example a callchain. */
static inline uint64_t hash_words(const uint64_t *w, size_t n, uint64_t seed)
{
	uint64_t h = seed ^ n;

	for (size_t i = 0; i < n; i++)
		h = hash_mix(h, w[i]);
	return h;
}

#endif
