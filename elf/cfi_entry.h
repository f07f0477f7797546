/*
 * Entries of call frame information (CFI): CIEs, which many functions share, and FDEs, one for each
 * function. Formats: DWARF 5, section 6.4; .eh_frame and .eh_frame_hdr: Linux Standard Base, core,
 * 10.6, pointer encodings 10.5. CIEs of versions 1, 3 and 4, with augmentations of the letters z,
 * R, P, L, S and B. All input is checked first and never read beyond its bytes.
 */
#ifndef ELF_CFI_ENTRY_H
#define ELF_CFI_ENTRY_H

#include "elf/dwarf_bytes.h"

#define CFI_HEAD_BYTES 20 /* the longest head of an entry */
#define CFI_AUGMENTATION_MAX 16
#define CFI_RELATIVE_MASK 0x70 /* the bits of an encoding that tell the base of a pointer */

/* The head of an entry. */
struct cfi_head {
	uint64_t off;  /* section offset of the entry */
	uint64_t body; /* of the byte after the CIE id or CIE pointer */
	uint64_t end;  /* of the next entry */
	uint64_t cie;  /* of an FDE's CIE */
	bool is_cie;
};

/*
 * Reads the head of the entry at section offset off.
 *   p, have: its first bytes; fewer than CFI_HEAD_BYTES only at the end of the section
 *   eh: the section is .eh_frame, not .debug_frame
 * Returns 0; -ENOENT: the section's end mark; -EBADMSG.
 */
int cfi_head_read(const unsigned char *p, size_t have, uint64_t off, uint64_t section_bytes,
		  bool eh, struct cfi_head *ret_head);

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_column; /* DWARF number of the register with the return address */
	uint8_t address_bytes;  /* 4 or 8 */
	uint8_t encoding;       /* DW_EH_PE_*, of function addresses in its FDEs */
	bool has_augmentation;  /* its FDEs have augmentation data, with a length */
	bool signal;            /* a signal frame: the caller was interrupted, and made no call */
	const unsigned char *program; /* of the initial rules; points into the section */
	size_t program_bytes;
};

struct cfi_fde {
	uint64_t start, end; /* vaddr */
	const unsigned char *program;
	size_t program_bytes;
};

/*
 * Reads an encoded pointer.
 *   address_bytes: 4 or 8
 *   here: the vaddr of its first byte
 *   data: the base of data-relative pointers; 0: they are not supported
 * Returns 0; -EBADMSG; -ENOTSUP: indirect, or relative to an unknown base.
 */
int cfi_pointer(struct dwarf_bytes *b, uint8_t encoding, uint8_t address_bytes, uint64_t here,
		uint64_t data, uint64_t *ret_value);

/* Reads the body of a CIE, `len` bytes. Returns 0; -EBADMSG; -ENOTSUP. */
int cfi_cie_read(const unsigned char *body, size_t len, uint8_t address_bytes,
		 struct cfi_cie *ret_cie);

/*
 * Reads the body of an FDE, whose first byte is at vaddr `here`. Returns 0; -ENOENT: the linker has
 * removed the function; -EBADMSG; -ENOTSUP.
 */
int cfi_fde_read(const struct cfi_cie *cie, const unsigned char *body, size_t len, uint64_t here,
		 struct cfi_fde *ret_fde);

#endif
