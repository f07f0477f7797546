/*
 * The last walked stack of each of a few threads. Most frames of a sample are also in the thread's
 * previous sample. A plain step depends only on three registers and the words that it reads. If
 * these are unchanged, walk_previous_follow copies the frames without a rule lookup.
 */
#ifndef UNWIND_WALK_PREVIOUS_H
#define UNWIND_WALK_PREVIOUS_H

#include "unwind/walk_state.h"

#define WALK_LAST_THREADS 64u     /* a power of two */
#define WALK_LAST_FRAMES_MAX 2048 /* deeper stacks are not kept */

/*
 * Keeps the stack in w, if it can be kept, and begins another walk. w->before becomes the last
 * stack of w->thread in the same space.
 */
void walk_previous_begin(struct walk *w);

/*
 * Appends the frames of the previous stack that follow from the same words. Moves regs from w's
 * last frame to the last appended one. Returns 0 or -ENOMEM.
 */
int walk_previous_follow(struct walk *w, struct unwind_regs *regs,
			 const struct unwind_memory *memory);

/* Forgets the registers that a caller does not share with its callee, before its own are set. */
static inline void walk_keep_regs(struct unwind_regs *regs, bool lost)
{
	regs->known &= lost ? 0 : ARCH_CALLEE_SAVED & ~(1u << ARCH_FP);
}

void walk_previous_free(struct walk *w);

#endif
