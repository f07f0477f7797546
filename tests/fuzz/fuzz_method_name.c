/* Input: a signature from the runtime's events. covers: dotnet/eventpipe/method_name.c */
#include "dotnet/eventpipe/method_name.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outbuf out = outbuf_to(-1);

	method_name_signature((const char *)data, size, "[A] T::M", 8, &out);
	/* Words become shorter or slightly longer. */
	if (out.error || out.len < 8 || out.len > 8 + 8 * size)
		abort();
	outbuf_close(&out);
	return 0;
}
