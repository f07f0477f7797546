/* Input: a native function's name from a symbol table. covers: symbols/names/native_name.c
 * symbols/names/demangle.c */
#include "symbols/names/demangle.h"
#include "symbols/names/native_name.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_length(char *text)
{
	if (text && strlen(text) > DEMANGLE_NAME_MAX + strlen("@plt"))
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outbuf out = outbuf_to(-1);
	char *name = malloc(size + 1);
	size_t len;

	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = 0;
	len = strlen(name);
	check_length(demangle_perf(name));
	check_length(demangle_full(name));
	if (native_name_perf(name, len, &out) || native_name_full(name, len, &out) ||
	    (len && !out.len))
		abort();
	outbuf_close(&out);
	free(name);
	return 0;
}
