/*
 * The symbols of one image by perf's rules, in file offsets, as perf keeps them. Followed is perf 6.1. Its 6.12 differs in
 * procedure linkage tables: it cuts what reaches into them (_init), sorts their slots by what they jump to, and knows
 * .plt.sec and .plt.got.
 */
#ifndef SYMBOLS_ELF_SYMBOLS_H
#define SYMBOLS_ELF_SYMBOLS_H

#include "symbols/elf_file.h"
#include "symbols/symtab.h"

struct elf_symbols {
	struct symtab *table; /* by file offset */
	unsigned char *strings[2]; /* the names of .symtab and .dynsym, which the table borrows */
};

/*
 * image: the file that is mapped. debug: the separate file its symbols come from, or NULL. 0, -ENOENT where it has none
 * at all, -E2BIG, -ENOMEM, -errno of reading. source, unless SYMBOL_NONE, tags all symbols.
 */
int elf_symbols_load(const struct elf_file *image, const struct elf_file *debug, enum symbol_source source,
		     struct elf_symbols *ret_symbols);
void elf_symbols_free(struct elf_symbols *s);

#endif
