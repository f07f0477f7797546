/*
 * Turns the CFI rules of one address into a short rule, which suffices for most frames, or applies
 * them in full.
 */
#ifndef UNWIND_CFI_RULES_H
#define UNWIND_CFI_RULES_H

#include "unwind/cfi.h"

/* The short form of a state. signal: cfi_cie.signal. */
struct unwind_rule cfi_rules_short_rule(const struct cfi_state *state, bool signal);

/*
 * Replaces a frame's registers with its caller's, by all rules of a state. A register becomes
 * unknown if it is undefined, saved outside the copy, or its expression fails. If that happens to
 * the CFA or the return address, it is an error and *regs stays unchanged. An undefined return
 * address means that there is no caller: all registers become unknown.
 *
 * Returns 0; -ENODATA: outside the copy; -ENXIO: depends on an unknown register; -EBADMSG: no rule
 * or a damaged rule for the CFA or the return address; -E2BIG, -ENOTSUP: see expression_evaluate.
 */
int cfi_rules_apply(const struct cfi_state *state, const struct unwind_memory *memory,
		    struct unwind_regs *regs);

/* Does the same by a short rule without `saves`, of kind UNWIND_PLAIN, UNWIND_PLT or UNWIND_END. */
int cfi_rules_apply_short_rule(const struct unwind_rule *rule, const struct unwind_memory *memory,
			       struct unwind_regs *regs);

#endif
