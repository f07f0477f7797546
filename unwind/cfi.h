/*
 * Call frame information (CFI): reads its entries and runs their programs, which give the rules for
 * each address. Formats: DWARF 5, section 6.4; .eh_frame and .eh_frame_hdr: Linux Standard Base,
 * core, 10.6, pointer encodings 10.5. CIEs of versions 1, 3 and 4, with augmentations of the
 * letters z, R, P, L, S and B. All input is checked first and never read beyond its bytes.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include "elf/dwarf_bytes.h"
#include "unwind/rule.h"

#define CFI_REMEMBERED_MAX 16 /* states on the stack of DW_CFA_remember_state */
#define CFI_HEAD_BYTES 20     /* the longest head of an entry */
#define CFI_AUGMENTATION_MAX 16

/* The head of an entry: a CIE (shared by many functions) or an FDE (one function). */
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

/* The way to one register of the caller. */
enum cfi_how {
	CFI_SAME,           /* unchanged; also registers without a rule */
	CFI_UNDEFINED,      /* it cannot be recovered */
	CFI_AT,             /* at address CFA + add */
	CFI_VALUE,          /* the value CFA + add */
	CFI_REGISTER,       /* in register `reg` */
	CFI_EXPRESSION,     /* at the address that the expression computes */
	CFI_VAL_EXPRESSION, /* the value that the expression computes */
};

struct cfi_register_rule {
	uint8_t how;  /* enum cfi_how */
	uint32_t len; /* bytes of the expression */
	union {
		int64_t add;
		uint64_t reg;
		const unsigned char *ops; /* of the expression; points into the section */
	};
};

/* The rules of all registers at one address. */
struct cfi_state {
	struct cfi_register_rule reg[ARCH_REGS];
	/* CFI_UNDEFINED: none yet; CFI_VALUE: register cfa_reg + cfa_add; CFI_VAL_EXPRESSION. */
	struct cfi_register_rule cfa;
	uint64_t cfa_reg;
	int64_t cfa_add; /* keeps its value while an expression is in force */
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;      /* DW_EH_PE_*, of function addresses in its FDEs */
	bool has_augmentation; /* its FDEs have augmentation data, with a length */
	bool signal;           /* a signal frame: the caller was interrupted, and made no call */
	struct cfi_state initial;
};

struct cfi_fde {
	uint64_t start, end; /* vaddr */
	const unsigned char *program;
	size_t program_bytes;
};

/*
 * Reads an encoded pointer.
 *   here: the vaddr of its first byte
 *   data: the base of data-relative pointers; 0: they are not supported
 * Returns 0; -EBADMSG; -ENOTSUP: indirect, or relative to an unknown base.
 */
int cfi_pointer(struct dwarf_bytes *b, uint8_t encoding, uint64_t here, uint64_t data,
		uint64_t *ret_value);

/*
 * Reads the body of a CIE, `len` bytes. Returns 0; -EBADMSG; -ENOTSUP; -E2BIG as in
 * cfi_program_next.
 */
int cfi_cie_read(const unsigned char *body, size_t len, struct cfi_cie *ret_cie);

/*
 * Reads the body of an FDE, whose first byte is at vaddr `here`. Returns 0; -ENOENT: the linker has
 * removed the function; -EBADMSG; -ENOTSUP.
 */
int cfi_fde_read(const struct cfi_cie *cie, const unsigned char *body, size_t len, uint64_t here,
		 struct cfi_fde *ret_fde);

/* A running CFI program. */
struct cfi_program {
	const struct cfi_cie *cie; /* borrowed */
	struct dwarf_bytes b;
	uint64_t end;      /* of the function */
	uint64_t from, to; /* vaddrs between which the state holds */
	struct cfi_state state;
	bool in_cie, done;
	uint32_t depth;
	struct cfi_state remembered[CFI_REMEMBERED_MAX];
};

/* Prepares for the first row. Borrows cie and the bytes of fde. */
void cfi_program_begin(struct cfi_program *p, const struct cfi_cie *cie, const struct cfi_fde *fde);

/*
 * Runs to the next row; its state holds in [from, to). Rows are in ascending order and never empty.
 * The last one ends at the function's end. 1: a row; 0: no more rows; -EBADMSG; -E2BIG: more than
 * CFI_REMEMBERED_MAX remembered states; -ENOTSUP: an unknown instruction.
 */
int cfi_program_next(struct cfi_program *p);

#endif
