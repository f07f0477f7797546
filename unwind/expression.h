/*
 * Values of DWARF expressions as call frame information has them (DWARF 5, sections 2.5.1 and 6.4.2): arithmetic over registers of a frame
 * and the copy of its stack. An evaluator of our own rather than that of libdw or libunwind: it is small, keeps nothing between calls,
 * opens no file, allocates nothing, and ends after EXPRESSION_STEPS_MAX operations whatever it is given.
 */
#ifndef UNWIND_EXPRESSION_H
#define UNWIND_EXPRESSION_H

#include "unwind/rule.h"

#define EXPRESSION_STACK_MAX 64 /* values */
#define EXPRESSION_STEPS_MAX 1024 /* operations, those of a loop each time */

/*
 * The value on top at the end of `len` bytes of operations. initial: what is on the stack before the first, the CFA of register rules; NULL:
 * nothing. 0; -EBADMSG: values are missing or too many, an operation is cut off, a jump leads outside, a division by 0; -ENODATA: memory
 * outside the copy; -ENXIO: a register that is not known; -E2BIG: more than EXPRESSION_STEPS_MAX; -ENOTSUP: an operation that has no
 * place in CFI.
 */
int expression_value(const void *ops, size_t len, const struct unwind_regs *regs, const struct unwind_memory *memory,
		     const uint64_t *initial, uint64_t *ret_value);

#endif
