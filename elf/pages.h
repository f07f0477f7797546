/*
 * The bytes of one section of an ELF file. Only the pages that are needed are read. Nothing is
 * mapped, because access to a mapped file that is cut meanwhile ends in SIGBUS. A compressed
 * section (SHF_COMPRESSED with zlib or zstd, and the older .zdebug_*) is unpacked whole at its
 * first use. The caller limits the unpacked size, for example to DWARF_UNPACKED_BYTES_MAX. All
 * unpacked sections together fit in ELF_BUDGET_SECTIONS.
 */
#ifndef ELF_PAGES_H
#define ELF_PAGES_H

#include "elf/elf_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_PAGES_BYTES_MAX ((uint64_t)4 << 30) /* of a section, unpacked */

struct elf_pages {
	unsigned char *data; /* NULL: not used yet; zeros follow the section */
	uint64_t bytes, file_off, file_bytes;
	uint8_t packed; /* enum packing of pages.c; 0: not packed */
	bool damaged;
	bool too_large; /* it unpacks to more than the caller allows */
	uint8_t *have;  /* a bit for each page that was read; NULL: all were */
	size_t mapped;
};

/*
 * Describes a section of the file. old: it is one of .zdebug_*. A damaged section, or one that
 * unpacks to more than unpacked_max, gets its flags and no bytes. *ret_pages owns nothing before
 * elf_pages_need. Returns 0 or -ENOMEM.
 */
int elf_pages_of_section(const struct elf_file *elf, const struct elf_section *from, bool old,
			 uint64_t unpacked_max, struct elf_pages *ret_pages);

/* Copies bytes from memory. Returns 0 or -ENOMEM. */
int elf_pages_of_memory(const void *data, size_t len, struct elf_pages *ret_pages);

/*
 * Makes [off, off + len) readable at data, by pread from fd. Adds the bytes of pages that it reads
 * to *resident. Returns 0, -EBADMSG (outside the section, or unreadable), -E2BIG (the budget is too
 * small to unpack it now) or -ENOMEM.
 */
int elf_pages_need(struct elf_pages *p, int fd, uint64_t off, uint64_t len, uint64_t *resident);

/* The bytes of pages that elf_pages_need would read. Unpacking is not counted. */
uint64_t elf_pages_missing(const struct elf_pages *p, uint64_t off, uint64_t len);

/* Frees what was read. A later elf_pages_need reads it again, except for a copy from memory. */
void elf_pages_forget(struct elf_pages *p);

#endif
