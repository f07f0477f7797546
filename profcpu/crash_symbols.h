/*
 * Names of the functions of the running program, from the symbol table of its file. Every function
 * is async-signal-safe.
 */
#ifndef PROFCPU_CRASH_SYMBOLS_H
#define PROFCPU_CRASH_SYMBOLS_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct crash_symbols {
	const unsigned char *file; /* mapped until the process ends; NULL: none */
	size_t bytes;
	const Elf64_Sym *symbols; /* in file, also names */
	size_t nsymbols;
	const char *names; /* ends with a zero byte */
	size_t names_bytes;
};

/* Opens the program's own file. A missing or invalid table gives no names. */
void crash_symbols_open(struct crash_symbols *s);

/*
 * The function that covers vaddr, and the offset of vaddr in it. NULL: no function has a name
 * there. Valid as long as *s.
 */
const char *crash_symbols_find(const struct crash_symbols *s, uint64_t vaddr, uint64_t *ret_off);

#endif
