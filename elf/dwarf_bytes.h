/* Reads numbers of DWARF from a range of bytes without leaving it. */
#ifndef ELF_DWARF_BYTES_H
#define ELF_DWARF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The bytes that are left. A read past the end gives 0 and sets bad. */
struct dwarf_bytes {
	const unsigned char *p, *end;
	bool bad;
};

/* Reads a little-endian number of at most 8 bytes. */
static inline uint64_t dwarf_uint(struct dwarf_bytes *b, unsigned int bytes)
{
	uint64_t x = 0;

	if ((size_t)(b->end - b->p) < bytes) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&x, b->p, bytes);
	b->p += bytes;
	return x;
}

static inline uint64_t dwarf_uleb(struct dwarf_bytes *b)
{
	uint64_t x = 0;

	for (unsigned int shift = 0; b->p < b->end; shift += 7) {
		unsigned char byte = *b->p++;

		if (shift < 64)
			x |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return x;
	}
	b->bad = true;
	return 0;
}

static inline void dwarf_skip(struct dwarf_bytes *b, uint64_t n)
{
	if ((uint64_t)(b->end - b->p) < n) {
		b->bad = true;
		b->p = b->end;
		return;
	}
	b->p += n;
}

int64_t dwarf_sleb(struct dwarf_bytes *b);

#endif
