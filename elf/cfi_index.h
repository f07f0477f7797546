/*
 * Finds the FDE that covers an address. A valid sorted table (.eh_frame_hdr) is searched in place.
 * Without one, the first lookup scans the whole section once. If FDEs overlap, the one with the
 * highest start wins; with equal starts, the last one in the section wins.
 */
#ifndef ELF_CFI_INDEX_H
#define ELF_CFI_INDEX_H

#include "base/vec.h"
#include "elf/cfi_entry.h"
#include "elf/cfi_section.h"

#define CFI_INDEX_ENTRIES_MAX ((size_t)1 << 21)      /* FDEs that a scan collects */
#define CFI_INDEX_BYTES_MAX ((uint64_t)512 << 20)    /* bytes that a scan covers */
#define CFI_INDEX_CIE_BYTES_MAX ((uint64_t)64 << 20) /* bytes of CIEs that a scan reads */
#define CFI_CIE_BYTES_MAX ((uint64_t)4 << 10)
#define CFI_FDE_BYTES_MAX ((uint64_t)1 << 20)
#define CFI_FDE_HEAD_MAX ((uint64_t)4 << 10) /* bytes of an FDE before its program */
/* FDEs to go back from an address: earlier ones may be longer and cover it. */
#define CFI_OVERLAP_MAX 16
#define CFI_RESIDENT_MAX ((uint64_t)8 << 20)  /* bytes of a section in memory */
#define CFI_RESIDENT_MIN ((uint64_t)64 << 10) /* the same without ELF_BUDGET_PAGES */
/* Lookups before the whole sorted table is read, so that it is searched without further checks. */
#define CFI_WHOLE_AFTER 64
#define CFI_WHOLE_BYTES_MAX ((uint64_t)2 << 20) /* of such a table */
#define CFI_CIES 8                              /* cached CIEs */

struct cfi_index_entry {
	uint64_t start; /* vaddr */
	uint32_t bytes; /* of the function */
	uint32_t off;   /* of the FDE in the section */
};

struct cfi_index {
	struct cfi_section *section;      /* borrowed */
	struct cfi_section *header;       /* borrowed; NULL: no usable header */
	uint64_t header_at, header_count; /* offset and rows of its table */
	const unsigned char *rows;        /* the whole table; NULL: not read whole */
	uint32_t *row_bytes; /* with it: of the functions of rows; 0: not known yet; may be NULL */
	uint32_t lookups;    /* before that */
	bool eh;             /* .eh_frame, not .debug_frame */
	bool header_wrong;   /* the header proved wrong; results from it may be too */
	bool walked;         /* the section was scanned */
	int error;           /* first error of the scan; the entries it collected are still valid */
	uint64_t cie_bytes;
	VEC(struct cfi_index_entry) entries; /* of the scan */
	uint64_t entries_taken;              /* bytes for them, from ELF_BUDGET_SECTIONS */
	struct {
		bool used;
		uint64_t off;
		struct cfi_cie cie;
	} cies[CFI_CIES];
};

/* The result for all addresses in [lo, hi). */
struct cfi_place {
	uint64_t lo, hi;
	/* 0: an FDE covers them; -ENOENT: none does; -EBADMSG, -ENOTSUP, -E2BIG: unknown. */
	int error;
	uint64_t start, end; /* of the FDE's function */
	uint64_t off;        /* of the FDE in the section */
	bool debug_frame;    /* that section is .debug_frame; set by cfi_frames */
};

/* Opens an index; header may be NULL. Reads only a few bytes. */
void cfi_index_open(struct cfi_index *x, struct cfi_section *section, struct cfi_section *header,
		    bool eh);
void cfi_index_close(struct cfi_index *x);

/*
 * Finds the FDE of an address other than UINT64_MAX. Sets header_wrong if the header proves wrong
 * now. Returns 0, with *ret_place; -ENOMEM.
 */
int cfi_index_find(struct cfi_index *x, uint64_t vaddr, struct cfi_place *ret_place);

/*
 * Reads the FDE at an offset and its CIE; both are valid until the next call of this module.
 * Returns 0; -EBADMSG; -ENOTSUP; -E2BIG; -ENOMEM.
 */
int cfi_index_fde(struct cfi_index *x, uint64_t off, const struct cfi_cie **ret_cie,
		  struct cfi_fde *ret_fde);

/* Frees all that can be read again. */
void cfi_index_drop(struct cfi_index *x);

#endif
