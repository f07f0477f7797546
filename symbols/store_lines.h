/* The records of symbols/names (symbols/store.h) about lines and inlined functions: text, lines, of. */
#ifndef SYMBOLS_STORE_LINES_H
#define SYMBOLS_STORE_LINES_H

#include "base/outbuf.h"
#include "symbols/answers.h"

/* While they are written. */
struct store_lines {
	const struct answers *answers; /* borrowed */
	struct answers_place *places; /* by symbol, chain and address */
	struct hashmap texts; /* text of answers -> its number in the file */
};

int store_lines_begin(struct store_lines *l, const struct answers *a); /* 0 or -ENOMEM */
void store_lines_end(struct store_lines *l);

/* Writes what is known of lines in a symbol. */
void store_lines_put(struct outbuf *out, struct store_lines *l, uint32_t symbol);

/* While they are read; zeroed at first. */
struct store_lines_parser {
	VEC(uint32_t) texts; /* of answers, by number */
	uint32_t chain; /* of the record above */
	bool has_chain;
};

void store_lines_parser_free(struct store_lines_parser *s);

/* Each takes the rest of a record, which is written to. 0, -EBADMSG, -ENOMEM, -E2BIG. symbol: ANSWERS_NONE where there is none. */
int store_lines_text(struct store_lines_parser *s, struct answers *a, char *p);
int store_lines_chain(struct store_lines_parser *s, struct answers *a, char *p);
int store_lines_of(struct store_lines_parser *s, struct answers *a, uint32_t symbol, char *p);

#endif
