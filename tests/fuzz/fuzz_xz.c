/* Input: .xz data. covers: elf/xz.c */
#include "elf/xz.h"

#include <stdint.h>
#include <stdlib.h>

#define FUZZ_XZ_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *out = NULL;
	size_t len = 0;

	if (xz_unpack(data, size, FUZZ_XZ_MAX, &out, &len))
		return 0;
	if (len > FUZZ_XZ_MAX || out[len])
		abort();
	free(out);
	return 0;
}
