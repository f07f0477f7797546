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

/* What the other file is, next to the one that is mapped. */
enum elf_symbols_debug {
	ELF_SYMBOLS_OWN, /* there is none */
	ELF_SYMBOLS_SEPARATE, /* all its sections are the image's, by number too, those of the image without their bytes */
	ELF_SYMBOLS_MINI, /* MiniDebugInfo: only symbols that the image's own .dynsym lacks */
};

/*
 * image: the file that is mapped; one that is not here has segments and no sections. debug: the file its .symtab comes from, or
 * NULL. 0, -ENOENT where it has none at all, -E2BIG, -ENOMEM, -errno of reading. source, unless SYMBOL_NONE, tags all symbols.
 */
int elf_symbols_load(const struct elf_file *image, const struct elf_file *debug, enum elf_symbols_debug kind,
		     enum symbol_source source, struct elf_symbols *ret_symbols);
void elf_symbols_free(struct elf_symbols *s);

#endif
