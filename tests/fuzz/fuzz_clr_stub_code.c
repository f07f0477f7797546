/* Input: executable memory. covers: dotnet/coreclr/stub_code.c */
#include "dotnet/coreclr/stub_code.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x7f0000000000ULL

struct seen {
	const uint8_t *data;
	size_t size;
	uint64_t end;
};

/* Stubs lie within the input, sorted and apart. Each begins with a stub that also matches alone. */
static int take(void *ctx, const struct clr_stub_code *stub)
{
	struct seen *s = ctx;
	struct clr_stub_code first;
	size_t at = (size_t)(stub->start - BASE);

	if (stub->start < s->end || !stub->bytes || at > s->size || stub->bytes > s->size - at ||
	    !stub->name)
		abort();
	if (clr_stub_code_match(s->data + at, s->size - at, stub->start, &first) ||
	    first.name != stub->name || first.bytes > stub->bytes ||
	    first.bytes > CLR_STUB_CODE_MAX)
		abort();
	s->end = stub->start + stub->bytes;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen s = {data, size, BASE};

	if (clr_stub_code_scan(data, size, BASE, take, &s))
		abort();
	return 0;
}
