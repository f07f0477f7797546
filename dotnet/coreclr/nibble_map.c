#include "dotnet/coreclr/nibble_map.h"

#define NIBBLE_CODE_BYTES 32
#define NIBBLES CLR_NIBBLE_MAP_STARTS_MAX
#define POINTER_ABOVE 8u

int clr_nibble_map_starts(uint32_t word, uint64_t base, uint64_t starts[CLR_NIBBLE_MAP_STARTS_MAX])
{
	int n = 0;

	if ((word & 15) > POINTER_ABOVE)
		return 0;
	for (int i = 0; i < NIBBLES; i++) {
		uint32_t nibble = word >> (28 - 4 * i) & 15;

		if (nibble && nibble <= NIBBLES)
			starts[n++] =
				base + (uint64_t)i * NIBBLE_CODE_BYTES + 4 * (uint64_t)(nibble - 1);
	}
	return n;
}

uint64_t clr_nibble_map_next(const uint32_t *words, size_t n, uint64_t base, uint64_t start,
			     uint64_t end, size_t words_max)
{
	size_t first = (size_t)((start - base) / CLR_NIBBLE_MAP_WORD_CODE_BYTES);
	uint64_t starts[CLR_NIBBLE_MAP_STARTS_MAX], next = end;

	for (size_t i = first; i < n && i < first + words_max && next == end; i++) {
		int found = clr_nibble_map_starts(
			words[i], base + i * CLR_NIBBLE_MAP_WORD_CODE_BYTES, starts);

		for (int k = 0; k < found; k++)
			if (starts[k] > start && starts[k] < next)
				next = starts[k];
	}
	return next;
}

void clr_nibble_map_clear(uint32_t *words, size_t n, uint64_t base, uint64_t start)
{
	uint64_t at = start - base, word = at / CLR_NIBBLE_MAP_WORD_CODE_BYTES;
	unsigned shift = (unsigned)(28 - 4 * (at / NIBBLE_CODE_BYTES % NIBBLES));

	if (word < n && (words[word] >> shift & 15) == 1 + at % NIBBLE_CODE_BYTES / 4)
		words[word] &= ~(15u << shift);
}
