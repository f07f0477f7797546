/*
 * Runs the programs of call frame information (CFI), which give the rules for each address. Format:
 * DWARF 5, section 6.4. All input is checked first and never read beyond its bytes.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include "elf/cfi_entry.h"
#include "unwind/rule.h"

#define CFI_REMEMBERED_MAX 16 /* states on the stack of DW_CFA_remember_state */

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

/* A running CFI program. */
struct cfi_program {
	const struct cfi_cie *cie; /* borrowed */
	struct dwarf_bytes b;
	uint64_t end;      /* of the function */
	uint64_t from, to; /* vaddrs between which the state holds */
	struct cfi_state state;
	struct cfi_state initial; /* of the CIE */
	bool in_cie, done;
	uint32_t depth;
	struct cfi_state remembered[CFI_REMEMBERED_MAX];
};

/*
 * Prepares for the first row: sets the initial rules, those of the ABI and of the CIE's program.
 * Borrows cie and the bytes of fde. Returns 0 or an error of cfi_program_next.
 */
int cfi_program_begin(struct cfi_program *p, const struct cfi_cie *cie, const struct cfi_fde *fde);

/*
 * Runs to the next row; its state holds in [from, to). Rows are in ascending order and never empty.
 * The last one ends at the function's end. Returns 1: a row; 0: no more rows; -EBADMSG; -E2BIG:
 * more than CFI_REMEMBERED_MAX remembered states; -ENOTSUP: an unknown instruction or return
 * register.
 */
int cfi_program_next(struct cfi_program *p);

#endif
