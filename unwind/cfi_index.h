/*
 * Which FDE of a section is an address's. Where the image has a sorted table (.eh_frame_hdr) that makes sense, it is searched in place;
 * else the section is gone through once, when the first address is asked for. Of FDEs that overlap the one that starts last counts, of
 * those that start at the same place the one that stands last.
 */
#ifndef UNWIND_CFI_INDEX_H
#define UNWIND_CFI_INDEX_H

#include "base/vec.h"
#include "unwind/cfi.h"
#include "unwind/cfi_section.h"

#define CFI_INDEX_ENTRIES_MAX ((size_t)1 << 21) /* FDEs that are found by going through a section */
#define CFI_INDEX_BYTES_MAX ((uint64_t)512 << 20) /* so far a section is gone through */
#define CFI_INDEX_CIE_BYTES_MAX ((uint64_t)64 << 20) /* bytes of CIEs that are read while it is gone through */
#define CFI_CIE_BYTES_MAX ((uint64_t)4 << 10)
#define CFI_FDE_BYTES_MAX ((uint64_t)1 << 20)
#define CFI_FDE_HEAD_MAX ((uint64_t)4 << 10) /* bytes of an FDE before its program */
#define CFI_OVERLAP_MAX 16 /* FDEs that start before an address and end before it, too, while one further back covers it */
#define CFI_RESIDENT_MAX ((uint64_t)8 << 20) /* bytes of a section that are kept */
#define CFI_CIES 8 /* that are kept */

struct cfi_index_entry {
	uint64_t start; /* vaddr */
	uint32_t bytes; /* of the function */
	uint32_t off; /* of the FDE */
};

struct cfi_index {
	struct cfi_section *section; /* borrowed */
	struct cfi_section *header; /* borrowed; NULL: there is none that can be used */
	uint64_t header_at, header_count; /* its table */
	bool eh; /* .eh_frame, not .debug_frame */
	bool walked;
	int error; /* what was wrong with the section when it was gone through; what is found of it is right nonetheless */
	uint64_t cie_bytes;
	VEC(struct cfi_index_entry) entries; /* where it was gone through */
	struct {
		bool used;
		uint64_t off;
		struct cfi_cie cie;
	} cies[CFI_CIES];
};

/* What holds for all addresses in [lo, hi). */
struct cfi_place {
	uint64_t lo, hi;
	int error; /* 0: an FDE covers them; -ENOENT: none does; -EBADMSG, -ENOTSUP, -E2BIG: it cannot be told */
	uint64_t start, end; /* of the FDE */
	uint64_t off; /* of the FDE in the section */
};

/* header may be NULL. Reads next to nothing. */
void cfi_index_open(struct cfi_index *x, struct cfi_section *section, struct cfi_section *header, bool eh);
void cfi_index_close(struct cfi_index *x);

/* The FDE of an address other than UINT64_MAX. *ret_changed: the header was found to be wrong, and what was said before may be, too; else untouched. 0, with
 * *ret_place; -ENOMEM. */
int cfi_index_find(struct cfi_index *x, uint64_t vaddr, struct cfi_place *ret_place, bool *ret_changed);

/* The FDE at an offset, and its CIE, until the next call of anything here. 0; -EBADMSG; -ENOTSUP; -E2BIG; -ENOMEM. */
int cfi_index_fde(struct cfi_index *x, uint64_t off, const struct cfi_cie **ret_cie, struct cfi_fde *ret_fde);

/* Forgets what can be read again. */
void cfi_index_drop(struct cfi_index *x);

#endif
