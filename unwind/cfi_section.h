/*
 * Where an ELF file of this architecture has its call frame information: .eh_frame, the sorted table over it (.eh_frame_hdr), and
 * .debug_frame, which may be compressed. Where section headers are missing the program header PT_GNU_EH_FRAME leads there.
 */
#ifndef UNWIND_CFI_SECTION_H
#define UNWIND_CFI_SECTION_H

#include "base/error.h"
#include "symbols/elf_pages.h"

#define CFI_UNPACKED_MAX ((uint64_t)256 << 20) /* of a compressed section */
#define CFI_IMAGE_BYTES_MAX ((size_t)16 << 20) /* of an image in memory */
#define CFI_READ_AHEAD ((uint64_t)16 << 10) /* so many bytes are read at once, if not more are needed */

struct cfi_section {
	struct elf_pages pages; /* bytes 0: it is not there */
	uint64_t addr; /* the vaddr of its first byte */
	int fd; /* borrowed */
	uint64_t resident; /* bytes that were read */
	bool open_end; /* its size is not known, only where it cannot be any more */
};

struct cfi_sections {
	struct cfi_section header, eh_frame, debug_frame;
};

/*
 * Of a file, whose fd is borrowed for as long as the sections are; or where fd is -1 of an image in memory, of which a copy is kept. A
 * section that is damaged is as one that is not there. 0; -ENOENT: it has none; -EBADMSG: not ELF, or of another architecture; -E2BIG;
 * -ENOMEM; -errno.
 */
int cfi_sections_open(int fd, const void *memory, size_t len, struct cfi_sections *ret_sections, struct parse_error *err);
void cfi_sections_close(struct cfi_sections *s);

/* Makes [off, off + len) readable at *ret_at, until cfi_section_drop. 0; -EBADMSG: outside of it, or it cannot be read; -ENOMEM. */
int cfi_section_need(struct cfi_section *s, uint64_t off, uint64_t len, const unsigned char **ret_at);

/* Forgets what was read and can be read again. */
void cfi_section_drop(struct cfi_section *s);

#endif
