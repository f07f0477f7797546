/* Input: a method's signature; if the first byte is odd, a type follows. covers:
 * dotnet/r2r_signature.c dotnet/signature.c */
#include "dotnet/signature.h"
#include "dotnet/signature_text.h"
#include "dotnet/r2r_signature.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int no_module(void *ctx, uint32_t number, const struct clr_metadata **ret)
{
	(void)ctx;
	(void)number;
	(void)ret;
	return -ENOENT;
}

/* Spelling a signature and skipping it reach the same end. */
static void compare(const uint8_t *data, size_t size)
{
	struct clr_type_resolver modules = {.find = no_module};
	struct reader spelled = reader_of(data, size), skipped = spelled;
	struct outbuf out = outbuf_to(-1);
	struct clr_text text = clr_text_begin(&out, &modules);

	clr_text_put_type(&text, NULL, &spelled, CLR_REFLECTION);
	clr_signature_skip(&skipped);
	if (!clr_text_end(&text) && (skipped.failed || skipped.pos != spelled.pos))
		abort();
	outbuf_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader r = reader_of(data, size);
	struct r2r_method_signature m;
	uint32_t n;

	if (!size)
		return 0;
	if (data[0] & 1) {
		compare(data + 1, size - 1);
		return 0;
	}
	r2r_signature_read_method(&r, &m);
	if (r.failed || !(m.flags & R2R_METHOD_HAS_OWNER))
		return 0;
	if (m.owner >= r.pos)
		abort();
	r = reader_of(data, size);
	reader_seek(&r, m.owner);
	/* The owner was skipped before, so its arguments exist. */
	if (clr_signature_enter_generic(&r, &n))
		for (; n; n--)
			clr_signature_skip(&r);
	return 0;
}
