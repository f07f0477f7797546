/*
 * A table of symbols, the common form of ELF files and kallsyms. If symbols share an address,
 * overlap or have no size, it chooses as perf does (tools/perf/util/symbol.c of 6.1:
 * choose_best_symbol, symbols__fixup_end, symbols__fixup_duplicate, symbols__find). Use:
 * symtab_new, symtab_add for each symbol, symtab_finish (symtab_finish.h), then the provider.
 */
#ifndef SYMBOLS_SYMTAB_SYMTAB_H
#define SYMBOLS_SYMTAB_SYMTAB_H

#include "base/arena.h"
#include "base/vec.h"
#include "symbols/core/symbol.h"

#include <stdbool.h>

#define SYMTAB_LEN_UNKNOWN UINT32_MAX
#define SYMTAB_NAME_MAX ((size_t)256 << 10) /* bytes; find cuts longer names */
#define SYMTAB_ENTRIES_MAX ((size_t)32 << 20)

/* One symbol. */
struct symtab_entry {
	uint64_t start, end; /* end == start: size unknown; end becomes the next symbol's start */
	/* NUL-terminated; in the table's arena, or borrowed and longer-lived than the table */
	const char *name;
	uint32_t name_len; /* SYMTAB_LEN_UNKNOWN: measured when needed */
	uint8_t source;    /* enum symbol_source */
	uint8_t binding;   /* STB_* of elf.h; upper case in kallsyms: STB_GLOBAL */
	uint8_t type;      /* STT_* of elf.h */
	/*
	 * A symbol without size reaches only to the page's end if the next symbol is of another
	 * group.
	 */
	uint8_t group;
};

/* The range of addresses that one entry names. */
struct symtab_piece {
	uint64_t start, end;
	uint32_t entry;
	uint32_t pad;
};

#define SYMTAB_PASSES_MAX 4

struct symtab {
	struct symbol_provider provider; /* finds by binary search */
	struct arena names;
	VEC(struct symtab_entry) entries; /* as added */
	/* Set by symtab_finish: sorted by address, without overlaps */
	VEC(struct symtab_piece) pieces;
	/*
	 * Index: starts[i] is the first piece that ends after base + (i << shift). It limits a
	 * search to a few pieces.
	 */
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

/* Makes an empty table, to be freed by symbol_provider_free(&t->provider). Returns 0 or -ENOMEM. */
int symtab_new(struct symtab **ret_table);

/*
 * Makes room for n symbols in an empty table; only a hint that saves copies. Returns 0 or -ENOMEM.
 */
int symtab_reserve(struct symtab *t, size_t n);

/*
 * Adds one symbol. copy_name: copy the name into the table. Returns 0, -ENOMEM or -E2BIG (over
 * SYMTAB_ENTRIES_MAX).
 */
int symtab_add(struct symtab *t, const struct symtab_entry *entry, int copy_name);

/*
 * Ends a pass; at most SYMTAB_PASSES_MAX - 1 calls. perf adds .symtab, .dynsym and the slots of
 * procedure linkage tables one after another. After each of the first two (fix_up) it sets ends and
 * drops duplicates. A caller that adds all symbols at once need not call this.
 */
void symtab_end_pass(struct symtab *t, bool fix_up);

/* Builds the index of the pieces. For symtab_finish. Returns 0 or -ENOMEM. */
int symtab_index_pieces(struct symtab *t);

/* The entry that names an address, or NULL; borrowed. */
const struct symtab_entry *symtab_entry_at(const struct symtab *t, uint64_t addr);

#endif
