/* Input: a byte, the major version, then section 105 of a ReadyToRun image, or a runtime's debug
 * info of a method. */
#include "dotnet/r2r_debug_info.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool in_order(void *ctx, uint32_t native, uint32_t il_offset)
{
	uint32_t *last = ctx;

	(void)il_offset;
	*last = native;
	return *last < UINT32_MAX / 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t il, bytes;
	size_t bounds;

	if (!size)
		return 0;
	/* Reads the input as the runtime's memory. */
	if (!r2r_debug_info_read_head(data + 1, size - 1, &bounds, &bytes) && bounds <= size - 1)
		for (enum r2r_bounds kind = R2R_BOUNDS_PLAIN; kind <= R2R_BOUNDS_ASYNC; kind++)
			(void)r2r_debug_info_decode_bounds(data + 1 + bounds, size - 1 - bounds,
							   kind, in_order, &(uint32_t){0});
	struct r2r_debug_info info = {.data = data + 1, .len = size - 1, .major = data[0]};

	for (uint32_t function = 0; function < 64; function++)
		for (uint32_t native = 0; native < 0x4000; native = native * 4 + 1)
			if (!r2r_debug_info_find_il(&info, function, native, &il) &&
			    il >= (uint32_t)-3)
				abort();
	r2r_debug_info_free(&info);
	return 0;
}
