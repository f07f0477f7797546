/*
 * The symbols of one image by the rules of perf 6.1, by file offset as in perf. Version 6.12 of
 * perf treats procedure linkage tables differently: it cuts symbols that reach into them (_init),
 * sorts their slots by jump target, and knows .plt.sec and .plt.got.
 */
#ifndef SYMBOLS_SYMTAB_ELF_SYMBOLS_H
#define SYMBOLS_SYMTAB_ELF_SYMBOLS_H

#include "elf/elf_file.h"
#include "symbols/symtab/symtab.h"

/* The section with the code of .NET native AOT. */
#define ELF_SYMBOLS_AOT_SECTION "__managedcode"

struct elf_symbols {
	struct symtab *table;      /* by file offset */
	unsigned char *strings[2]; /* the names of .symtab and .dynsym; the table borrows them */
	uint64_t taken;            /* bytes of both, from ELF_BUDGET_SYMBOLS */
	bool over_limit;           /* a part was left out, over a limit */
};

/* The debug file beside the mapped file. */
enum elf_symbols_debug {
	ELF_SYMBOLS_OWN, /* none */
	/* It has all sections of the image under the same numbers, some without bytes. */
	ELF_SYMBOLS_SEPARATE,
	ELF_SYMBOLS_MINI, /* MiniDebugInfo: only symbols that the image's .dynsym lacks */
};

/*
 * Loads the symbols of the mapped file `image`; an absent image has segments and no sections. If
 * debug is not NULL, .symtab comes from it. Each symbol gets source as its tag unless source is
 * SYMBOL_NONE. Returns 0, -ENOENT (no symbols), -E2BIG (over a limit or over
 * ELF_BUDGET_SYMBOLS), -ENOMEM or -errno of reading.
 */
int elf_symbols_load(const struct elf_file *image, const struct elf_file *debug,
		     enum elf_symbols_debug kind, enum symbol_source source,
		     struct elf_symbols *ret_symbols);
void elf_symbols_free(struct elf_symbols *s);

#endif
