/*
 * Walks one stack from a sample's registers and stack copy to the start of the thread. A
 * walk_source supplies the rules of the code. Without a rule, it tries the frame pointer, and then
 * guesses: it scans the stack for a return address. It decides why a stack ends (enum walk_end).
 * After the end of the rules or of the copy, the walk continues on the kernel's chain of frame
 * pointers, from a frame that both know. Registers, stack and rules are hostile input: each step
 * must lead up the stack, and frames are limited.
 */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include "unwind/walk_state.h"

#define WALK_SCAN_WORDS 512 /* words searched for return addresses, in all of one stack */
#define WALK_JUMPS_MAX 64   /* steps that may lead down: signal frames switch stacks */

/* "start", "copy-end", ... for reports. Static. */
const char *walk_end_text(enum walk_end end);

struct walk_source {
	void *ctx;
	/*
	 * Finds the rule at addr. Returns 0; -ENOENT: no code there; -EAGAIN: not known yet;
	 * -EBADMSG.
	 */
	int (*rule)(void *ctx, uint64_t addr, struct unwind_rule *ret_rule);
	/*
	 * Replaces the registers of a frame at addr with its caller's, as far as they can be known.
	 * *ret_signal: a signal interrupted the caller in this frame. Returns 0; -ENODATA: the copy
	 * lacks the needed bytes; -ENOENT, -EAGAIN, -EBADMSG, -ENOTSUP.
	 */
	int (*step)(void *ctx, uint64_t addr, struct unwind_regs *regs,
		    const struct unwind_memory *memory, bool *ret_signal);
	/* Whether a call instruction ends at addr: 1, 0; -1: its code cannot be read. */
	int (*is_return)(void *ctx, uint64_t addr);
	/*
	 * The probable original of a hijacked return address at a stack address. Returns 0;
	 * -ENOENT. NULL: there are no hijacked returns.
	 */
	int (*hijacked)(void *ctx, uint64_t at, const struct unwind_memory *memory,
			uint64_t *ret_ip);
};

/*
 * Walks a stack into w->frames. chain: the user part of the kernel's callchain, ip first, without
 * context marks; nchain may be 0. Returns 0 or -ENOMEM.
 */
int walk_stack(struct walk *w, const struct walk_source *source, const struct unwind_regs *regs,
	       const struct unwind_memory *memory, const uint64_t *chain, size_t nchain);
void walk_free(struct walk *w);

#endif
