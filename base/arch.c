#include "base/arch.h"

/* As in enum perf_event_x86_regs: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8 ... r15. */
const int8_t arch_perf_reg[64] = {
	0,  3,  2,  1,  4,  5,  6,  7,  16, -1, -1, -1, -1, -1, -1, -1, 8,  9,  10, 11, 12, 13,
	14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
};

/*
 * Matches E8 rel32, and FF /2 with its ModRM, SIB and displacement, two to seven bytes. Prefixes
 * before it do not matter.
 */
bool arch_ends_in_call(const unsigned char bytes[ARCH_CALL_MAX])
{
	const unsigned char *end = bytes + ARCH_CALL_MAX;

	if (end[-5] == 0xe8)
		return true;
	for (unsigned len = 2; len <= 7; len++) {
		unsigned char modrm = end[1 - (int)len], mod = modrm >> 6, rm = modrm & 7;
		unsigned need = 2 + (mod != 3 && rm == 4) + (mod == 1) +
				4 * (mod == 2 || (mod == 0 && rm == 5));

		if (end[-(int)len] != 0xff || (modrm >> 3 & 7) != 2)
			continue;
		/* Its SIB byte has no base, but a displacement of 4 bytes. */
		if (mod == 0 && rm == 4 && (end[2 - (int)len] & 7) == 5)
			need += 4;
		if (need == len)
			return true;
	}
	return false;
}
