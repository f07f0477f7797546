/*
 * What was answered about lines and inlined functions, remembered beside the symbols (symbols/answers.h): by symbol and address,
 * as at another time the same address can be in another symbol.
 */
#ifndef SYMBOLS_ANSWERS_LINES_H
#define SYMBOLS_ANSWERS_LINES_H

#include "base/hashmap.h"
#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

#define ANSWERS_LINES_MAX 64 /* functions at one address */

/* A function at an address. The last one is that of the symbol, whose name is not repeated here. */
struct answers_line {
	uint32_t function, file; /* in answers.texts, raw; ANSWERS_NONE: not known */
	uint32_t line; /* 0: not known */
};

/* The functions at an address, the innermost first: a part of lines. Equal ones are one. */
struct answers_chain {
	uint32_t first, n;
};

struct answers_place {
	uint64_t addr;
	uint32_t symbol;
	uint32_t chain; /* ANSWERS_NONE: nothing is known */
};

/* A zeroed struct is empty. Read by other modules, changed only here. */
struct answers_lines {
	VEC(struct answers_line) lines;
	VEC(struct answers_chain) chains;
	VEC(struct answers_place) places;
	struct hashmap chain_ids, place_ids;
};

void answers_lines_free(struct answers_lines *l);

/* Finds what equals it or adds it. 0, -ENOMEM, -E2BIG. */
int answers_chain(struct answers_lines *l, const struct answers_line *lines, size_t n, uint32_t *ret_chain);

/* 0 and a chain or ANSWERS_NONE; -ENOENT: was not asked. */
int answers_lines_get(const struct answers_lines *l, uint32_t symbol, uint64_t addr, uint32_t *ret_chain);

/* Remembers it, in the place of what was known. 0, -ENOMEM, -E2BIG. */
int answers_lines_put(struct answers_lines *l, uint32_t symbol, uint64_t addr, uint32_t chain);

#endif
