/*
 * A table of symbols: the shape in which ELF files, kallsyms and extracts answer. Where symbols share an address, overlap
 * or have no size, it answers as perf does (tools/perf/util/symbol.c of 6.1: choose_best_symbol, symbols__fixup_end,
 * symbols__fixup_duplicate, symbols__find).
 */
#ifndef SYMBOLS_SYMTAB_H
#define SYMBOLS_SYMTAB_H

#include "base/arena.h"
#include "base/vec.h"
#include "symbols/symbol.h"

#include <stdbool.h>

#define SYMTAB_LEN_UNKNOWN UINT32_MAX
#define SYMTAB_NAME_MAX ((size_t)256 << 10) /* longer names are cut when they are asked for */

/* One symbol while the table is built and after. */
struct symtab_entry {
	uint64_t start, end; /* end == start: size not known, becomes the next symbol's start */
	const char *name; /* NUL-terminated; in the table's arena, or borrowed from what outlives the table */
	uint32_t name_len; /* SYMTAB_LEN_UNKNOWN: measured when asked for */
	uint8_t source; /* enum symbol_source */
	uint8_t binding; /* STB_* of elf.h; kallsyms upper case: STB_GLOBAL */
	uint8_t type; /* STT_* of elf.h */
	uint8_t group; /* a symbol without size does not reach to a next one of another group, only to the next page's end */
};

/* What one entry answers for. */
struct symtab_piece {
	uint64_t start, end;
	uint32_t entry;
	uint32_t pad;
};

#define SYMTAB_PASSES_MAX 4

struct symtab {
	struct symbol_provider provider; /* find by binary search */
	struct arena names;
	VEC(struct symtab_entry) entries; /* as added */
	VEC(struct symtab_piece) pieces; /* after symtab_finish: by address, apart from each other */
	/* The first piece that ends behind address (base + (i << shift)), so that finding looks at a few pieces only. */
	uint32_t *starts;
	size_t nstarts;
	uint64_t base;
	uint32_t shift;
	struct symtab_pass {
		uint32_t end; /* entries before this one belong to this pass or an earlier one */
		bool fix_up;
	} passes[SYMTAB_PASSES_MAX];
	uint32_t npasses;
};

/* An empty table. 0 or -ENOMEM. Freed by symbol_provider_free(&t->provider). */
int symtab_new(struct symtab **ret_table);

/* Makes room for n symbols in an empty table, so that adding does not move them about. Only a hint. 0 or -ENOMEM. */
int symtab_reserve(struct symtab *t, size_t n);

/* Adds one symbol; copy_name says whether name is copied. 0, -ENOMEM, -E2BIG over SYMTAB_ENTRIES_MAX. */
#define SYMTAB_ENTRIES_MAX ((size_t)32 << 20)
int symtab_add(struct symtab *t, const struct symtab_entry *entry, int copy_name);

/*
 * perf adds .symtab, .dynsym and slots of procedure linkage tables one after another, and sets ends and drops duplicates
 * after each of the first two (fix_up), not after the last. Ends such a pass; at most SYMTAB_PASSES_MAX - 1. Who
 * adds everything in one go need not call this.
 */
void symtab_end_pass(struct symtab *t, bool fix_up);

/*
 * Sorts, lets perf's rule choose between symbols of one address, and sets ends that are not known. limit: the end for a
 * last one without size, 0: the page after its start. Must be called once, before find. 0 or -ENOMEM.
 */
int symtab_finish(struct symtab *t, uint64_t limit);

/* The entry that answers for an address, or NULL; borrowed. */
const struct symtab_entry *symtab_entry_at(const struct symtab *t, uint64_t addr);

#endif
