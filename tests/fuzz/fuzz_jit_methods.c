/* Input: a recording's file of methods. covers: symbols/jit/methods.c
 * symbols/jit/methods_file_read.c symbols/jit/il.c symbols/store/store_fields.c base/bitset.c */
#include "symbols/jit/methods_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void probe(const struct jit_methods *m, enum symbol_source source, uint64_t addr,
		  uint64_t time)
{
	struct jit_methods_result a;

	jit_methods_find(m, source, addr, time, &a);
	if (a.from_ns > time || a.until_ns <= time)
		abort();
	struct jit_il_place place;

	if (a.method && a.method->il &&
	    !jit_il_find(jit_methods_il(m), a.method->il - 1, (uint32_t)(addr - a.method->start),
			 &place) &&
	    (place.module >= jit_il_modules(jit_methods_il(m)) || !place.rid ||
	     place.il > INT32_MAX))
		abort();
	if (a.method &&
	    (addr - a.method->start >= a.method->bytes || strlen(a.method->name) > a.method->len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum symbol_source sources[] = {SYMBOL_MEMORY, SYMBOL_RUNDOWN, SYMBOL_PERFMAP};
	char *text = malloc(size + 1);
	struct jit_methods_file file;
	struct parse_error err;
	struct jit_methods *m;

	if (!text || jit_methods_new(&m)) {
		free(text);
		return 0;
	}
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (!jit_methods_parse(text, size, m, &file, &err) && !jit_methods_finish(m)) {
		if (file.bad_lines > file.lines)
			abort();
		for (size_t s = 0; s < sizeof(sources) / sizeof(*sources); s++) {
			for (uint64_t i = 0; i < 64; i++)
				probe(m, sources[s], 0xfc0 + i * 8, i * 8);
			for (size_t i = 0; i + 1 < size && i < 256; i++)
				probe(m, sources[s], data[i] * 16ULL, data[i + 1]);
		}
	}
	jit_methods_free(m);
	free(text);
	return 0;
}
