/*
 * One stack: from the registers of a sample and the copy of its stack, frame by frame, to the start of the thread. What a frame's code
 * says of itself comes from a source; where that or the copy ends, the kernel's chain of frame pointers carries on, from a frame that
 * both know. Registers, stack and rules are hostile: each step goes up the stack, and frames are counted.
 */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include "unwind/rule.h"

#define WALK_FRAMES_MAX 10000 /* of one stack, if nobody says otherwise */
#define WALK_SCAN_WORDS 512 /* of the stack that are looked through for a return address, in all of one stack */
#define WALK_JUMPS_MAX 64 /* steps that may lead down: a signal's frame leads to the stack it interrupted */

/* How a frame was found from the one that it called. */
enum walk_how {
	WALK_RULE, /* by rules, exact; the sampled one too */
	WALK_FRAME_POINTER, /* its callee has no rules: by the frame pointer, in the copy */
	WALK_SPLICE, /* on the kernel's chain of frame pointers */
	WALK_GUESS, /* a word of the stack that may be a return address; what one was before it was hijacked; or a caller is missing before it */
};

enum walk_end {
	WALK_START, /* the start of the thread */
	WALK_EDGE, /* the copy of the stack ended */
	WALK_NO_RULE, /* code without rules, and its frame pointer leads nowhere */
	WALK_NOT_CODE, /* a return address is in no code */
	WALK_STUCK, /* the rules lead down the stack, or round in circles */
	WALK_LIMIT, /* as many frames as may be */
	WALK_DAMAGED, /* rules that cannot be, or a register that nobody knows */
	WALK_LATER, /* the code of a frame is not known yet: once more when it is */
	WALK_ENDS,
};

/* "start", "copy-end", ... for reports; static. */
const char *walk_end_text(enum walk_end end);

struct walk_frame {
	uint64_t ip;
	uint64_t at; /* where on the stack it was read; 0: not known */
	uint64_t sp, fp, fp_at; /* its registers; where fp was read on the way to it, 0: it was not */
	uint8_t how; /* enum walk_how */
	bool exact; /* ip executes, or was interrupted, and is not where a call will return to */
	bool has_fp; /* fp is known */
	bool lost; /* what the frame before had in other registers is not known in it */
	bool plain; /* sp, ip and fp of the frame before, and what is at `at` and fp_at, are all that led to it */
};

struct walk_source {
	void *ctx;
	/* The rule at addr. 0; -ENOENT: there is no code; -EAGAIN: not known yet; -EBADMSG. */
	int (*rule)(void *ctx, uint64_t addr, struct unwind_rule *ret_rule);
	/* From the registers in a frame at addr to its caller's, all that can be known. *ret_signal: the frame is what a signal
	 * interrupted the caller with. 0; -ENODATA: the copy lacks what it takes; -ENOENT, -EAGAIN, -EBADMSG, -ENOTSUP. */
	int (*step)(void *ctx, uint64_t addr, struct unwind_regs *regs, const struct unwind_memory *memory, bool *ret_signal);
	/* Whether a call ends at addr: 1, 0; -1: its code cannot be read. */
	int (*is_return)(void *ctx, uint64_t addr);
	/* The return address that a runtime has hijacked at a place of the stack. 0: it is thought to be *ret_ip; -ENOENT. NULL: nobody knows. */
	int (*hijacked)(void *ctx, uint64_t at, const struct unwind_memory *memory, uint64_t *ret_ip);
};

struct walk {
	struct walk_frame *frames; /* leaf first; the caller frees it by walk_free */
	size_t n, cap;
	size_t max; /* frames; 0: WALK_FRAMES_MAX */
	bool in_kernel; /* the sample was taken there: ip may be where a system call will return to */
	uint8_t end; /* enum walk_end */
	uint8_t edge; /* why the rules did not get to the end by themselves, where the kernel's chain carried on; else WALK_START */
	bool full; /* all registers had to be followed */
	uint32_t steps_full; /* steps that more than a plain rule took */

	uint32_t thread, space; /* before each walk: whose stack it is, and what for as long as rules hold, equal for equal ones; 0: nothing is kept */
	bool passing; /* the source says so: a rule of this stack holds only for now */
	struct walk_last *last; /* walk_last.h's, as what follows */
	struct {
		uint32_t thread, space;
	} walked; /* the stack that is in frames */
	const struct walk_frame *before;
	size_t nbefore, at_before;
};

/* chain: the user part of the kernel's callchain, ip first, without marks; n may be 0. 0 or -ENOMEM. */
int walk_stack(struct walk *w, const struct walk_source *source, const struct unwind_regs *regs,
	       const struct unwind_memory *memory, const uint64_t *chain, size_t nchain);
void walk_free(struct walk *w);

#endif
