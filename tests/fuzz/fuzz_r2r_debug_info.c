/* Input: a byte, the major version, then section 105 of a ReadyToRun image. */
#include "symbols/r2r_debug_info.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t il;

	if (!size)
		return 0;
	for (uint32_t function = 0; function < 64; function++)
		for (uint32_t native = 0; native < 0x4000; native = native * 4 + 1)
			if (!r2r_debug_info_il(data + 1, size - 1, data[0], function, native, &il) && il >= (uint32_t)-3)
				abort();
	return 0;
}
