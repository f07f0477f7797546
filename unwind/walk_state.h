/*
 * A walk over one stack: the frames it has found, and the state that it keeps between walks. walk.h
 * makes walks; walk_previous.h reuses the frames of a thread's previous walk.
 */
#ifndef UNWIND_WALK_STATE_H
#define UNWIND_WALK_STATE_H

#include "unwind/rule.h"

#define WALK_FRAMES_MAX 10000 /* of one stack, by default */

/* How a frame was found from its callee. */
enum walk_how {
	WALK_RULE,          /* by rules: exact; also the sampled frame itself */
	WALK_FRAME_POINTER, /* by the frame pointer in the copy; the callee has no rules */
	WALK_SPLICE,        /* on the kernel's chain of frame pointers */
	/*
	 * A word of the stack that may be a return address, an earlier value of a hijacked return
	 * address, or a frame whose callee is missing.
	 */
	WALK_GUESS,
};

/* Why a walk ended. */
enum walk_end {
	WALK_START,        /* the start of the thread */
	WALK_COPY_END,     /* the end of the stack copy */
	WALK_NO_RULE,      /* code without rules, and an unusable frame pointer */
	WALK_NOT_CODE,     /* a return address outside all code */
	WALK_NO_PROGRESS,  /* rules that lead down the stack, or in circles */
	WALK_FRAME_LIMIT,  /* the maximum number of frames */
	WALK_DAMAGED,      /* invalid rules, or a register whose value is unknown */
	WALK_CODE_UNKNOWN, /* code that is not known yet; walk again when it is */
	WALK_ENDS,
};

struct walk_frame {
	uint64_t ip;
	uint64_t at;     /* stack address of ip; 0: not known */
	uint64_t sp, fp; /* the frame's registers */
	uint64_t fp_at;  /* stack address of fp; 0: not read from the stack */
	uint8_t how;     /* enum walk_how */
	bool exact;      /* ip executes or was interrupted; it is not a return address */
	bool has_fp;     /* fp is known */
	bool lost;       /* the callee's other registers are unknown in this frame */
	/* Depends only on sp, ip and fp of the callee, and on the words at `at` and fp_at. */
	bool plain;
};

struct walk {
	struct walk_frame *frames; /* leaf first; walk_free frees it */
	size_t n, cap;
	size_t max;          /* frames; 0: WALK_FRAMES_MAX */
	bool in_kernel;      /* the sample is from the kernel: ip may follow a system call */
	uint8_t end;         /* enum walk_end */
	uint8_t edge;        /* if frames were spliced: why the rules ended; else WALK_START */
	bool full;           /* all registers had to be followed */
	uint32_t steps_full; /* steps that needed more than a plain rule */

	/*
	 * Set both before each walk: whose stack it is, and an id of the address space's state.
	 * Equal ids mean that all rules are equal. space 0: keep nothing.
	 */
	uint32_t thread, space;
	bool temporary_rules; /* set by the source: a rule of this stack holds only for the moment
			       */

	/* Private to walk.c and walk_previous.c. */
	struct walk_previous *last;
	struct {
		uint32_t thread, space;
	} walked; /* of the stack in frames */
	const struct walk_frame *before;
	size_t nbefore, at_before;
};

#endif
