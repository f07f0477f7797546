/*
 * Finds and reads the call frame information of an ELF file: .eh_frame, its sorted table
 * .eh_frame_hdr, and .debug_frame, which may be compressed. If the section headers are stripped, it
 * follows the program header PT_GNU_EH_FRAME.
 */
#ifndef ELF_CFI_SECTION_H
#define ELF_CFI_SECTION_H

#include "elf/pages.h"

#define CFI_UNPACKED_MAX ((uint64_t)32 << 20)  /* bytes of a decompressed section */
#define CFI_IMAGE_BYTES_MAX ((size_t)16 << 20) /* of an image in memory */
#define CFI_READ_AHEAD ((uint64_t)16 << 10)    /* the least number of bytes to read at once */

struct cfi_section {
	struct elf_pages pages; /* bytes 0: the section is missing */
	uint64_t addr;          /* vaddr of its first byte */
	uint8_t address_bytes;  /* 4 or 8 */
	int fd;                 /* borrowed */
	uint64_t resident;      /* bytes in memory */
	bool open_end;          /* the size is an upper limit, not exact */
};

struct cfi_sections {
	struct cfi_section header, eh_frame, debug_frame;
};

/*
 * Finds the sections of a file of any architecture. Its descriptor must stay open until
 * cfi_sections_close; *elf may be closed. Sections of an image in memory are copied. A damaged
 * section counts as missing. Returns 0; -ENOENT: no section; -E2BIG; -ENOMEM.
 */
int cfi_sections_of(const struct elf_file *elf, struct cfi_sections *ret_sections);

void cfi_sections_close(struct cfi_sections *s);

/*
 * Makes [off, off + len) readable at *ret_at until cfi_section_drop. Returns 0; -EBADMSG: outside
 * the section, or unreadable; -E2BIG: too little memory to unpack it; -ENOMEM.
 */
int cfi_section_need(struct cfi_section *s, uint64_t off, uint64_t len,
		     const unsigned char **ret_at);

/* Frees the bytes that can be read again. Keeps an unpacked section until cfi_sections_close. */
void cfi_section_drop(struct cfi_section *s);

#endif
