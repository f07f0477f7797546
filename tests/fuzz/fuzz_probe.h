/* Looks up an address in a provider of symbols and checks that the result is consistent. */
#ifndef TESTS_FUZZ_FUZZ_PROBE_H
#define TESTS_FUZZ_FUZZ_PROBE_H

#include "symbols/core/symbol.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether a symbol covers addr. */
static inline bool fuzz_probe(struct symbol_provider *p, uint64_t addr, struct symbol *ret_symbol)
{
	uint32_t piece = symbol_provider_piece(p, addr, 0);
	struct symbol s;

	if (symbol_provider_find(p, addr, 0, &s)) {
		if (piece != SYMBOL_NO_PIECE)
			abort();
		return false;
	}
	if (s.piece != piece || s.start > addr || s.end <= addr || strlen(s.name) != s.name_len)
		abort();
	*ret_symbol = s;
	return true;
}

/* The same; the result must be valid in the whole range that it reports. */
static inline bool fuzz_probe_range(struct symbol_provider *p, uint64_t addr,
				    struct symbol *ret_symbol)
{
	struct symbol last;

	if (!fuzz_probe(p, addr, ret_symbol))
		return false;
	if (!fuzz_probe(p, ret_symbol->end - 1, &last) || last.start != ret_symbol->start ||
	    last.name != ret_symbol->name || last.piece != ret_symbol->piece)
		abort();
	return true;
}

#endif
