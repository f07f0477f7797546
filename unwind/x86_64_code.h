/*
 * Frames told by code alone: epilogues, which UNWIND_INFO does not describe, and code of which nothing else is known. All of it is exact
 * or says that it does not know: an instruction that cannot be read, a stack pointer that comes from elsewhere and paths that do not
 * agree end what is known.
 */
#ifndef UNWIND_X86_64_CODE_H
#define UNWIND_X86_64_CODE_H

#include "unwind/rule.h"

#include <stdbool.h>

#define X86_64_CODE_BYTES_MAX ((uint32_t)1 << 20) /* of one function that is followed */
#define X86_64_AHEAD_MAX 256 /* instructions that are looked at for a return */

/*
 * Whether a function that .NET's JIT made is in an epilogue: from here on it only gives back its frame and leaves, by ret or a tail call. code: len bytes
 * from the instruction at hand on (64 are enough). before, behind: bytes of the function before it, and from it on; a jump out of them is a
 * tail call. The rule of the place, where it is.
 */
bool x86_64_epilogue(const unsigned char *code, size_t len, uint64_t before, uint64_t behind, struct unwind_rule *ret_rule);

/*
 * Follows code from its start, where a call has led to, along all its ways, and tells for each instruction that it comes to, in order, the rule there
 * (kind UNWIND_NONE: ways do not agree). What is not 0 of fn ends it and is given back. many: what stands behind an end and no way
 * leads to begins anew, as in a row of stubs. 0; -E2BIG over X86_64_CODE_BYTES_MAX; -ENOMEM.
 */
int x86_64_follow(const unsigned char *code, size_t len, bool many,
		  int (*fn)(void *ctx, size_t offset, const struct unwind_rule *rule), void *ctx);

/*
 * The rule at the start of code, from what comes after it: all ways to a return within len bytes have to give back as much of the
 * stack. For leaves (calls are taken to come back, and to leave the stack as it was). False: not known.
 */
bool x86_64_ahead(const unsigned char *code, size_t len, struct unwind_rule *ret_rule);

#endif
