/*
 * The records of symbols/names about lines and inlined functions: text, lines, of
 * (symbols/store/store.h).
 */
#ifndef SYMBOLS_STORE_STORE_LINES_H
#define SYMBOLS_STORE_STORE_LINES_H

#include "base/outbuf.h"
#include "symbols/store/lookup_cache.h"

/* The state of writing. */
struct store_lines {
	const struct lookup_cache *lookup_cache; /* borrowed */
	struct line_cache_place *places;         /* sorted by symbol, chain and address */
	struct hashmap texts; /* text of lookup_cache -> its number in the file */
};

/* Returns 0 or -ENOMEM. */
int store_lines_begin(struct store_lines *l, const struct lookup_cache *cache);
void store_lines_end(struct store_lines *l);

/* Writes the lines of a symbol. */
void store_lines_put(struct outbuf *out, struct store_lines *l, uint32_t symbol);

/* The state of reading; zeroed at first. */
struct store_lines_parser {
	VEC(uint32_t) texts; /* number in the file -> text of lookup_cache */
	uint32_t chain;      /* of the last lines record */
	bool has_chain;
};

void store_lines_parser_free(struct store_lines_parser *s);

/*
 * Each parses the rest of a record and overwrites it. symbol: LOOKUP_NONE if there is none. Returns
 * 0, -EBADMSG, -ENOMEM, -E2BIG or -ENOSPC (lookup_cache_fits).
 */
int store_lines_text(struct store_lines_parser *s, struct lookup_cache *cache, char *p);
int store_lines_chain(struct store_lines_parser *s, struct lookup_cache *cache, char *p);
int store_lines_of(struct store_lines_parser *s, struct lookup_cache *cache, uint32_t symbol,
		   char *p);

#endif
