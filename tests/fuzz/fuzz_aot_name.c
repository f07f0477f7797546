/* Input: a symbol made by the native AOT compiler. covers: symbols/names/aot_name.c */
#include "symbols/names/aot_name.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outbuf out = outbuf_to(-1);
	char *name = malloc(size + 1); /* exact allocation, so that an overread is visible */

	if (!name)
		return 0;
	memcpy(name, data, size);
	if (aot_name_full(name, size, "shop.app", &out))
		abort();
	outbuf_close(&out);
	free(name);
	return 0;
}
