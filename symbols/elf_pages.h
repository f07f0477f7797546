/*
 * The bytes of one section of an ELF file. Only the pages are read that are asked for, and nothing is mapped: a mapping of a file that is
 * cut meanwhile ends in SIGBUS. A compressed section (SHF_COMPRESSED with zlib or zstd, and the older .zdebug_*) is unpacked whole when it
 * is asked for first.
 */
#ifndef SYMBOLS_ELF_PAGES_H
#define SYMBOLS_ELF_PAGES_H

#include "symbols/elf_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_PAGES_BYTES_MAX ((uint64_t)4 << 30) /* of a section, unpacked */

struct elf_pages {
	unsigned char *data; /* NULL: nothing was asked for yet; behind the section are zeros */
	uint64_t bytes, file_off, file_bytes;
	uint8_t packed; /* enum of elf_pages.c; 0: not */
	bool damaged;
	uint8_t *have; /* a bit for each page that was read; NULL: all were */
	size_t mapped;
};

/*
 * A section of the file; old: one of .zdebug_*. What is damaged has the flag and no bytes. Packed sections larger than unpacked_max are
 * damaged. *ret_pages owns nothing before elf_pages_need. 0, -ENOMEM.
 */
int elf_pages_of(const struct elf_file *elf, const struct elf_section *from, bool old, uint64_t unpacked_max,
		 struct elf_pages *ret_pages);

/* A copy of bytes in memory. 0 or -ENOMEM. */
int elf_pages_of_memory(const void *data, size_t len, struct elf_pages *ret_pages);

/* Makes [off, off + len) readable at data, by pread of fd, the file's. *resident counts the bytes of pages that were read. 0; -EBADMSG
 * outside of it, or it could not be read; -ENOMEM. */
int elf_pages_need(struct elf_pages *p, int fd, uint64_t off, uint64_t len, uint64_t *resident);

/* Frees what was read; it is read again when it is asked for, but what is a copy of memory is not. */
void elf_pages_forget(struct elf_pages *p);

#endif
