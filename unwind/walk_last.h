/*
 * The stacks that were walked last, one for each of a few threads. Most of a thread's frames are those of its last sample, and what leads
 * from one to the next by plain rules is a function of three registers and the words that were read: where these are the same, the rules
 * need not be looked up again.
 */
#ifndef UNWIND_WALK_LAST_H
#define UNWIND_WALK_LAST_H

#include "unwind/walk.h"

#define WALK_LAST_THREADS 64u /* a power of two */
#define WALK_LAST_FRAMES_MAX 2048 /* deeper stacks are walked anew */

/* Keeps the stack that w has, if it can be kept, and begins another: of w->thread, whose last one in the same space becomes w->before. */
void walk_last_begin(struct walk *w);

/* With regs of w's last frame: adds the frames to which the same words lead as the last time, and moves regs to the last of them. 0 or -ENOMEM. */
int walk_last_follow(struct walk *w, struct unwind_regs *regs, const struct unwind_memory *memory);

/* Of the registers of a frame only these are left in its caller, of whose own nothing was said yet. */
static inline void walk_keep_regs(struct unwind_regs *regs, bool lost)
{
	regs->known &= lost ? 0 : ARCH_PRESERVED & ~(1u << ARCH_FP);
}

void walk_last_free(struct walk *w);

#endif
