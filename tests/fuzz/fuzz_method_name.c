/*
 * Input: a signature from the runtime's events, and a raw name. covers:
 * dotnet/eventpipe/method_name.c
 */
#include "dotnet/eventpipe/method_name.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A raw name becomes the texts of an event, whose signature can be read. */
static void split(const char *raw, size_t len)
{
	struct outbuf signature = outbuf_to(-1), again = outbuf_to(-1);
	struct method_name_parts parts;

	if (!method_name_split(raw, len, &parts, &signature)) {
		if (parts.name < raw || parts.name + parts.name_len > raw + len ||
		    parts.type < raw || parts.type + parts.type_len > raw + len ||
		    parts.assembly < raw || parts.assembly + parts.assembly_len > raw + len)
			abort();
		/* Words become longer: "object" has 19 characters in an event. */
		if (signature.len > 8 * len + 8)
			abort();
		(void)method_name_signature(signature.data, signature.len, "[A] T::M", 8, &again);
	} else if (signature.len) {
		abort();
	}
	outbuf_close(&signature);
	outbuf_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outbuf out = outbuf_to(-1);

	method_name_signature((const char *)data, size, "[A] T::M", 8, &out);
	/* Words become shorter or slightly longer. */
	if (out.error || out.len < 8 || out.len > 8 + 8 * size)
		abort();
	outbuf_close(&out);
	split((const char *)data, size);
	return 0;
}
