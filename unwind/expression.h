/*
 * Evaluates DWARF expressions in call frame information (DWARF 5, sections 2.5.1 and 6.4.2):
 * arithmetic on the registers of a frame and the copy of its stack. We do not use libdw or
 * libunwind: this evaluator is small, keeps no state, opens no file, allocates nothing, and always
 * stops after EXPRESSION_STEPS_MAX operations.
 */
#ifndef UNWIND_EXPRESSION_H
#define UNWIND_EXPRESSION_H

#include "unwind/rule.h"

#define EXPRESSION_STACK_MAX 64   /* values */
#define EXPRESSION_STEPS_MAX 1024 /* operations; each round of a loop counts */

/*
 * Evaluates `len` bytes of operations; the result is the value on top of the stack.
 *   initial: the first value on the stack, the CFA for register rules; NULL: none
 * Returns 0, or:
 *   -EBADMSG: stack underflow or overflow, a cut-off operation, a jump outside, a division by 0
 *   -ENODATA: memory outside the copy
 *   -ENXIO: an unknown register
 *   -E2BIG: more than EXPRESSION_STEPS_MAX operations, or than the stack may take
 *   -ENOTSUP: an operation that CFI cannot use
 */
int expression_evaluate(const void *ops, size_t len, const struct unwind_regs *regs,
			const struct unwind_memory *memory, const uint64_t *initial,
			uint64_t *ret_value);

#endif
