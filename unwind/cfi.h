/*
 * Call frame information: its entries, and what their programs say for each address. Formats: DWARF 5, section 6.4; .eh_frame and
 * .eh_frame_hdr: Linux Standard Base, core, 10.6, pointer encodings 10.5. Versions 1, 3 and 4 of CIEs, augmentations of z, R, P, L, S
 * and B. Everything is checked before it is believed, and bounded by the bytes that are there.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include "symbols/dwarf_entry.h"
#include "unwind/rule.h"

#define CFI_REMEMBERED_MAX 16 /* states, one above the other */
#define CFI_HEAD_BYTES 20 /* of an entry before what is its own, at most */
#define CFI_AUGMENTATION_MAX 16

/* The beginning of an entry: a CIE (what many functions share) or an FDE (a function). */
struct cfi_head {
	uint64_t off, body, end; /* in the section: of the entry, of what comes after CIE id or CIE pointer, of the next one */
	uint64_t cie; /* of an FDE: where its CIE is */
	bool is_cie;
};

/* The entry at an offset, of which the first `have` bytes are at p (fewer than CFI_HEAD_BYTES only where the section ends). eh: it is
 * .eh_frame, not .debug_frame. 0; -ENOENT: the section's end mark; -EBADMSG. */
int cfi_head_read(const unsigned char *p, size_t have, uint64_t off, uint64_t section_bytes, bool eh, struct cfi_head *ret_head);

/* How to get one register of the caller. */
enum cfi_how {
	CFI_SAME, /* as it is here; also what nothing is said of */
	CFI_UNDEFINED,
	CFI_AT, /* at CFA + add */
	CFI_VALUE, /* it is CFA + add */
	CFI_REGISTER, /* it is in register `reg` */
	CFI_EXPRESSION, /* at the value of the expression */
	CFI_VAL_EXPRESSION, /* it is the value of the expression */
};

struct cfi_cell {
	uint8_t how; /* enum cfi_how */
	uint32_t len; /* bytes of the expression */
	union {
		int64_t add;
		uint64_t reg;
		const unsigned char *ops; /* of the expression, in the section's bytes */
	};
};

/* The rules at an address. */
struct cfi_state {
	struct cfi_cell reg[ARCH_REGS];
	struct cfi_cell cfa; /* CFI_UNDEFINED: none yet; CFI_VALUE: register cfa_reg + cfa_add; CFI_VAL_EXPRESSION */
	uint64_t cfa_reg;
	int64_t cfa_add; /* stays while an expression holds */
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of its functions' addresses, DW_EH_PE_* */
	bool sized; /* FDEs have data of augmentations, with its length */
	bool signal; /* the caller of these frames was interrupted: its address is that of the next instruction */
	struct cfi_state initial;
};

struct cfi_fde {
	uint64_t start, end; /* vaddr */
	const unsigned char *program;
	size_t program_bytes;
};

/* A pointer; here: the vaddr of its first byte; data: what data-relative ones count from, 0: there is no such. 0; -EBADMSG; -ENOTSUP:
 * indirect ones and those relative to what is not known. */
int cfi_pointer(struct dwarf_bytes *b, uint8_t encoding, uint64_t here, uint64_t data, uint64_t *ret_value);

/* What is behind the head of a CIE, `len` bytes. 0; -EBADMSG; -ENOTSUP; -E2BIG as in cfi_program_next. */
int cfi_cie_read(const unsigned char *body, size_t len, struct cfi_cie *ret_cie);

/* What is behind the head of an FDE, whose first byte is at vaddr `here`. 0; -ENOENT: the linker has removed the function; -EBADMSG;
 * -ENOTSUP. */
int cfi_fde_read(const struct cfi_cie *cie, const unsigned char *body, size_t len, uint64_t here, struct cfi_fde *ret_fde);

/* A program while it runs. */
struct cfi_program {
	const struct cfi_cie *cie; /* borrowed */
	struct dwarf_bytes b;
	uint64_t end; /* of the function */
	uint64_t from, to; /* vaddr: the state holds here */
	struct cfi_state state;
	bool in_cie, done;
	uint32_t depth;
	struct cfi_state remembered[CFI_REMEMBERED_MAX];
};

/* Before the first row. cie and the bytes of fde stay borrowed. */
void cfi_program_begin(struct cfi_program *p, const struct cfi_cie *cie, const struct cfi_fde *fde);

/*
 * Runs to the next row: state holds in [from, to), rows go up and are never empty, the last one ends at the function's end. 1: a row; 0:
 * there is no more; -EBADMSG; -E2BIG: more than CFI_REMEMBERED_MAX remembered states; -ENOTSUP: an instruction that is not known.
 */
int cfi_program_next(struct cfi_program *p);

#endif
