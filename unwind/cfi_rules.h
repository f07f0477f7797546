/* What the rules of CFI at an address mean: as the short rule that most frames need no more than, and done in full. */
#ifndef UNWIND_CFI_RULES_H
#define UNWIND_CFI_RULES_H

#include "unwind/cfi.h"

/* The short form of a state; signal: of its CIE. */
struct unwind_rule cfi_rule_of(const struct cfi_state *state, bool signal);

/*
 * Makes the caller's registers of a frame's by all rules of a state. A register whose value cannot be had (undefined, saved outside the
 * copy, an expression that fails) is not known afterwards; of the CFA and the return address that is an error, and *regs stays as it
 * was. Where the return address is undefined there is no caller, and nothing is known. 0; -ENODATA: outside the copy; -ENXIO: it hangs
 * on a register that is not known; -EBADMSG: no rule for the CFA or the return address, or a damaged one; -E2BIG, -ENOTSUP as of
 * expression_value.
 */
int cfi_rules_apply(const struct cfi_state *state, const struct unwind_memory *memory, struct unwind_regs *regs);

/* The same by a rule of kind UNWIND_PLAIN, UNWIND_PLT or UNWIND_END, which has no `saves`. */
int cfi_rules_apply_short(const struct unwind_rule *rule, const struct unwind_memory *memory, struct unwind_regs *regs);

#endif
