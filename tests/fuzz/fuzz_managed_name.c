/* Input: the name of a perf map's line. covers: symbols/names/managed_name.c
 * symbols/names/managed_type.c symbols/names/managed_type_nested.c
 * symbols/names/managed_type_generated.c symbols/names/managed_text.c */
#include "symbols/names/managed_name.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outbuf out = outbuf_to(-1);
	struct managed_name_part tier, module;
	enum managed_name_kind kind =
		managed_name_full((const char *)data, size, &out, &tier, &module);

	if (tier.at + tier.len > size || module.at + module.len > size)
		abort();
	if ((kind == MANAGED_NAME_METHOD) != (module.len > 0))
		abort();
	/* Short forms are short: repeated input is written once. */
	if (!out.error && out.len > 4 * size + 64)
		abort();
	outbuf_close(&out);
	return 0;
}
