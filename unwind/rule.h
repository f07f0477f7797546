/*
 * The data of one unwinding step: the registers of a frame, the copy of its stack, and the rule
 * that leads to its caller. Registers have their DWARF numbers. base/arch.h describes the
 * architecture.
 */
#ifndef UNWIND_RULE_H
#define UNWIND_RULE_H

#include "base/arch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct unwind_regs {
	/* ARCH_IP: the instruction that the frame executes, or its return address */
	uint64_t v[ARCH_REGS];
	uint32_t known; /* a bit for each register of v */
};

/* A copy of [start, start + len) of a thread's stack. */
struct unwind_memory {
	uint64_t start;
	const unsigned char *data; /* any alignment */
	size_t len;
	/*
	 * Steps that rules may still take for this stack: operations of expressions, and what else
	 * the numbers below count. A hostile file can make each frame take long. NULL: no limit.
	 */
	uint64_t *steps_left;
};

#define UNWIND_STEPS_MAX ((uint64_t)1 << 19) /* of a stack: about 2 ms */
#define UNWIND_STEPS_DECODE 4                /* an instruction of a precompiled function */
#define UNWIND_STEPS_COMPILE 128             /* a function with CFI, */
#define UNWIND_STEPS_PROGRAM 8               /* and each byte of its program */

/* Takes steps from those that are left. False: there are too few, and none is left. */
static inline bool unwind_take_steps(uint64_t *steps_left, uint64_t steps)
{
	bool enough = !steps_left || steps <= *steps_left;

	if (steps_left)
		*steps_left = enough ? *steps_left - steps : 0;
	return enough;
}

/* Reads the word at addr. False: the copy lacks some of its bytes. */
static inline bool unwind_memory_word(const struct unwind_memory *m, uint64_t addr,
				      uint64_t *ret_word)
{
	uint64_t off = addr - m->start;

	if (m->len < sizeof(*ret_word) || off > m->len - sizeof(*ret_word))
		return false;
	memcpy(ret_word, m->data + off, sizeof(*ret_word));
	return true;
}

/*
 * The caller's value of a register that the rules save at addr. If addr is below the stack pointer,
 * an epilogue has already restored the register; clang's CFI does not say so. Then take its current
 * value. Always read a return address from memory. False: the value is unknown.
 */
static inline bool unwind_saved(const struct unwind_memory *m, const struct unwind_regs *regs,
				unsigned reg, uint64_t addr, uint64_t *ret_value)
{
	if (reg == ARCH_IP || addr >= regs->v[ARCH_SP] || !(regs->known >> ARCH_SP & 1))
		return unwind_memory_word(m, addr, ret_value);
	if (regs->known >> reg & 1)
		*ret_value = regs->v[reg];
	return regs->known >> reg & 1;
}

enum unwind_kind {
	/* No rule is known. */
	UNWIND_NONE,
	/*
	 * CFA = cfa_reg + cfa_add. The return address is at CFA + ARCH_RETURN_OFF. `fp` says how
	 * to get the frame pointer.
	 */
	UNWIND_PLAIN,
	/* The outermost function of its thread: the return address is undefined. */
	UNWIND_END,
	/*
	 * A slot of a procedure linkage table: like PLAIN, but from offset 11 of each 16 bytes on
	 * the CFA is 8 higher.
	 */
	UNWIND_PLT,
	/*
	 * PLAIN, derived from the instructions that follow. Trust it only in the sampled frame, and
	 * only if it leads to a return address.
	 */
	UNWIND_AHEAD,
	/*
	 * Inside a runtime's stub for hijacked returns (clr_hijack.h): PLAIN, but the return
	 * address may not be stored yet. At the stub's first instruction (cfa_add 0) it never is.
	 */
	UNWIND_HIJACK,
	/*
	 * The byte before such a stub. A return address that leads there replaces another one. For
	 * an executing frame it is like FULL.
	 */
	UNWIND_HIJACK_NEXT,
	/*
	 * Needs the complete CFI and the memory (cfi_table_step): expressions, signal frames,
	 * registers in unusual places.
	 */
	UNWIND_FULL,
};

enum unwind_fp {
	UNWIND_FP_SAME, /* the register still holds the caller's frame pointer */
	UNWIND_FP_AT,   /* it is saved at CFA + fp_at */
	UNWIND_FP_LOST, /* it cannot be recovered */
};

struct unwind_rule {
	uint8_t kind;    /* enum unwind_kind */
	uint8_t cfa_reg; /* any register */
	uint8_t fp;      /* enum unwind_fp */
	/* Other registers are saved too. Only a full step (walk_source.step) recovers them. */
	uint8_t saves;
	int32_t cfa_add, fp_at; /* bytes */
};
_Static_assert(sizeof(struct unwind_rule) == 12, "a table row is a rule and its start: 16 bytes");

#endif
