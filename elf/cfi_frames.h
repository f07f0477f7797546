/*
 * The call frame information of one ELF image: which FDE covers an address. Unwinding takes the
 * FDE's rules, naming takes the bounds of its function, which survive when symbols are stripped.
 * .eh_frame takes precedence; .debug_frame covers the rest. Opening reads little more than headers.
 * Bytes read are limited: above CFI_RESIDENT_MAX all are dropped, and read again when needed. If
 * all images together exceed ELF_BUDGET_PAGES, that limit is CFI_RESIDENT_MIN, and cfi_frames_drop
 * goes below it. One thread uses it.
 */
#ifndef ELF_CFI_FRAMES_H
#define ELF_CFI_FRAMES_H

#include "elf/cfi_index.h"

struct cfi_frames {
	struct cfi_sections sections;
	struct cfi_index eh_frame, debug_frame;
};

/*
 * Opens a file of any architecture. Its descriptor must stay open; *elf may be closed. An image in
 * memory is copied. Returns 0; -ENOENT: the image has no CFI; -E2BIG; -ENOMEM.
 */
int cfi_frames_open(const struct elf_file *elf, struct cfi_frames **ret_frames);
void cfi_frames_free(struct cfi_frames *f);

/* Frees bytes that can be read again. */
void cfi_frames_drop(struct cfi_frames *f);

/* Reads from another descriptor of the same file from now on. */
void cfi_frames_use_fd(struct cfi_frames *f, int fd);

/*
 * Finds the FDE of an address. If eh_frame.header_wrong becomes set, earlier results may be wrong.
 * Returns 0, with *ret_place; -ENOENT: UINT64_MAX, which nothing covers; -ENOMEM.
 */
int cfi_frames_find(struct cfi_frames *f, uint64_t vaddr, struct cfi_place *ret_place);

/* Reads the FDE of a place as cfi_index_fde. */
int cfi_frames_fde(struct cfi_frames *f, const struct cfi_place *place,
		   const struct cfi_cie **ret_cie, struct cfi_fde *ret_fde);

/* Bytes of memory, approximately. */
uint64_t cfi_frames_bytes(const struct cfi_frames *f);

#endif
