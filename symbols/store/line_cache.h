/*
 * Cache of lines and inlined functions, beside the symbols (symbols/store/lookup_cache.h). The key
 * is symbol and address, because one address can belong to different symbols at different times.
 */
#ifndef SYMBOLS_STORE_LINE_CACHE_H
#define SYMBOLS_STORE_LINE_CACHE_H

#include "base/hashmap.h"
#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

#define LINE_CACHE_CHAIN_MAX 64 /* functions at one address */

/*
 * A function at an address. The last function of a chain is the symbol's; its name is not repeated
 * here.
 */
struct line_cache_line {
	uint32_t function, file; /* in lookup_cache.texts, raw; LOOKUP_NONE: unknown */
	uint32_t line;           /* 0: unknown */
};

/*
 * The functions at an address, the innermost first: a part of lines. Equal chains are stored once.
 */
struct line_cache_chain {
	uint32_t first, n;
};

struct line_cache_place {
	uint64_t addr;
	uint32_t symbol;
	uint32_t chain; /* LOOKUP_NONE: looked up without result */
};

/* A zeroed struct is empty. Other modules read it; only this module changes it. */
struct line_cache {
	VEC(struct line_cache_line) lines;
	VEC(struct line_cache_chain) chains;
	VEC(struct line_cache_place) places;
	struct hashmap chain_ids, place_ids;
};

void line_cache_free(struct line_cache *l);

/* Finds an equal chain or adds it. Returns 0, -ENOMEM or -E2BIG. */
int line_cache_chain(struct line_cache *l, const struct line_cache_line *lines, size_t n,
		     uint32_t *ret_chain);

/* Looks a place up. Returns 0 and a chain or LOOKUP_NONE, or -ENOENT (not in the cache). */
int line_cache_get(const struct line_cache *l, uint32_t symbol, uint64_t addr, uint32_t *ret_chain);

/* Adds a place or replaces its chain. Returns 0, -ENOMEM or -E2BIG. */
int line_cache_put(struct line_cache *l, uint32_t symbol, uint64_t addr, uint32_t chain);

#endif
