#include "elf/dwarf_bytes.h"

int64_t dwarf_sleb(struct dwarf_bytes *b)
{
	uint64_t x = 0;

	for (unsigned int shift = 0; b->p < b->end; shift += 7) {
		unsigned char byte = *b->p++;

		if (shift < 64)
			x |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			x |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)x;
	}
	b->bad = true;
	return 0;
}
