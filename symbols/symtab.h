/* A sorted table of symbols that do not overlap: the shape in which ELF files, kallsyms and extracts answer. */
#ifndef SYMBOLS_SYMTAB_H
#define SYMBOLS_SYMTAB_H

#include "base/arena.h"
#include "base/vec.h"
#include "symbols/symbol.h"

/* One symbol while the table is built and after. */
struct symtab_entry {
	uint64_t start, end; /* end == start: size not known, becomes the next symbol's start */
	const char *name; /* in the table's arena, or borrowed from what outlives the table */
	uint32_t name_len;
	uint8_t source; /* enum symbol_source */
	uint8_t binding; /* STB_* of elf.h; kallsyms upper case: STB_GLOBAL */
	uint8_t type; /* STT_* of elf.h */
	uint8_t pad;
};

struct symtab {
	struct symbol_provider provider; /* find by binary search */
	struct arena names;
	VEC(struct symtab_entry) entries;
	int sorted;
};

/* An empty table. 0 or -ENOMEM. Freed by symbol_provider_free(&t->provider). */
int symtab_new(struct symtab **ret_table);

/* Adds one symbol; copy_name says whether name is copied. 0, -ENOMEM, -E2BIG over SYMTAB_ENTRIES_MAX. */
#define SYMTAB_ENTRIES_MAX ((size_t)32 << 20)
int symtab_add(struct symtab *t, const struct symtab_entry *entry, int copy_name);

/*
 * Sorts, lets perf's rule choose between symbols of one address (tools/perf/util/symbol.c, choose_best_symbol) and sets
 * ends that are not known (symbols__fixup_end). limit: the end for the last one, 0: a page past its start.
 * Must be called once, before find.
 */
int symtab_finish(struct symtab *t, uint64_t limit);

#endif
