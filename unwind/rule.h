/*
 * What unwinding is about: the registers of a frame, the copy of its stack, and the rule that leads to its caller. Registers have
 * their numbers of DWARF; the architecture's part is arch.h.
 */
#ifndef UNWIND_RULE_H
#define UNWIND_RULE_H

#include "unwind/arch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct unwind_regs {
	uint64_t v[ARCH_REGS]; /* ARCH_IP: where the frame executes, or where it will be returned to */
	uint32_t known; /* a bit for each register of v */
};

/* A copy of [start, start + len) of a thread's stack. */
struct unwind_memory {
	uint64_t start;
	const unsigned char *data; /* of any alignment */
	size_t len;
};

/* The word at addr. False where the copy does not have all of it. */
static inline bool unwind_memory_word(const struct unwind_memory *m, uint64_t addr, uint64_t *ret_word)
{
	uint64_t off = addr - m->start;

	if (m->len < sizeof(*ret_word) || off > m->len - sizeof(*ret_word))
		return false;
	memcpy(ret_word, m->data + off, sizeof(*ret_word));
	return true;
}

/*
 * The value of the caller's register that rules say is saved at addr. Below the stack pointer nothing is saved any more: an epilogue has
 * given it back to the register, which clang's CFI does not say. A return address is always read. False: it cannot be known.
 */
static inline bool unwind_saved(const struct unwind_memory *m, const struct unwind_regs *regs, unsigned reg, uint64_t addr,
				uint64_t *ret_value)
{
	if (reg == ARCH_IP || addr >= regs->v[ARCH_SP] || !(regs->known >> ARCH_SP & 1))
		return unwind_memory_word(m, addr, ret_value);
	if (regs->known >> reg & 1)
		*ret_value = regs->v[reg];
	return regs->known >> reg & 1;
}

enum unwind_kind {
	UNWIND_NONE, /* nothing is known of the place */
	UNWIND_PLAIN, /* CFA = cfa_reg + cfa_add; the return address is at CFA + ARCH_RETURN_AT; the frame pointer as fp says */
	UNWIND_END, /* the outermost function of its thread: the return address is undefined */
	UNWIND_PLT, /* a slot of a procedure linkage table: as PLAIN, but the CFA is 8 more from the 11th byte of each 16 on */
	UNWIND_AHEAD, /* as PLAIN, by the instructions that follow: to be believed of one that executes, where a return address is found by it */
	UNWIND_HIJACK, /* of a runtime's stub for hijacked returns (clr_hijack.h): as PLAIN, but the return address may not be there yet, and where
			* the stub begins (cfa_add 0) is not */
	UNWIND_HIJACK_NEXT, /* the byte before such a stub: a return address that leads there stands for another one; else as FULL */
	UNWIND_FULL, /* only all rules and the memory tell (cfi_table_step): expressions, signal frames, registers saved in odd places */
};

enum unwind_fp {
	UNWIND_FP_SAME, /* the caller's frame pointer is still in the register */
	UNWIND_FP_AT, /* it is at CFA + fp_at */
	UNWIND_FP_LOST,
};

struct unwind_rule {
	uint8_t kind; /* enum unwind_kind */
	uint8_t cfa_reg; /* any register */
	uint8_t fp; /* enum unwind_fp */
	uint8_t saves; /* other registers are saved too: what they were in the caller only cfi_table_step tells */
	int32_t cfa_add, fp_at; /* bytes */
};
_Static_assert(sizeof(struct unwind_rule) == 12, "with its start one row of a table has 16 bytes");

#endif
