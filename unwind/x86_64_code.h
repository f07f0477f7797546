/*
 * Derives unwinding rules from code alone: for epilogues, which UNWIND_INFO does not describe, and
 * for code without unwind information. Results are exact or missing. An unknown instruction, a
 * stack pointer from another source, or paths that disagree end the analysis.
 */
#ifndef UNWIND_X86_64_CODE_H
#define UNWIND_X86_64_CODE_H

#include "unwind/rule.h"

#include <stdbool.h>

#define X86_64_CODE_BYTES_MAX ((uint32_t)1 << 20) /* of one function that is followed */
#define X86_64_AHEAD_MAX 256                      /* instructions to follow to a return */

/*
 * Whether a function of .NET's JIT compiler is in an epilogue here: it only releases its frame and
 * leaves, by ret or a tail call. Fills *ret_rule if true. *ret_decoded: instructions it looked at.
 *   code: len bytes from the instruction on; 64 suffice
 *   before, behind: bytes of the function before the instruction, and from it on
 * A jump outside these bytes is a tail call.
 */
bool x86_64_epilogue(const unsigned char *code, size_t len, uint64_t before, uint64_t behind,
		     struct unwind_rule *ret_rule, unsigned int *ret_decoded);

/*
 * Follows all paths of code from its start, the target of a call. Then calls fn for each
 * instruction that a path reaches, in order, with its rule. Kind UNWIND_NONE: paths disagree. Stops
 * at the first nonzero result of fn and returns it.
 *   many: the code is a row of stubs; instructions that no path reaches begin a new one
 * Returns 0; -E2BIG: over X86_64_CODE_BYTES_MAX; -ENOMEM.
 */
int x86_64_follow(const unsigned char *code, size_t len, bool many,
		  int (*fn)(void *ctx, size_t offset, const struct unwind_rule *rule), void *ctx);

/*
 * The rule at the start of code, from the instructions that follow. All paths to a return within
 * len bytes must release the same amount of stack. It is meant for leaf functions: calls are
 * assumed to return and to leave the stack unchanged. False: unknown.
 */
bool x86_64_ahead(const unsigned char *code, size_t len, struct unwind_rule *ret_rule);

#endif
