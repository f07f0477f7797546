#include "symbols/function_bounds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct function_bounds b;
	uint64_t start, end;

	if (!size || function_bounds_parse(data + 1, size - 1, 0x1000, data[0] & 1, &b))
		return 0;
	(void)function_bounds_find(&b, 0x1005, &start, &end);
	function_bounds_free(&b);
	return 0;
}
