/*
 * The frames that naming makes for one address of a callchain. frames.h makes them, callchains.h
 * builds stacks of them.
 */
#ifndef SYMBOLS_CALLCHAIN_FRAME_H
#define SYMBOLS_CALLCHAIN_FRAME_H

#include <stdbool.h>
#include <stdint.h>

/* The meaning of a symbol for the stack it is in, known by its name. */
enum callchain_frame_flag {
	/* entry code of interrupts and faults: the address of its caller is not a return address */
	CALLCHAIN_FRAME_INTERRUPTED = 1,
	/* signal return code: entered by a return, at its first instruction */
	CALLCHAIN_FRAME_TRAMPOLINE = 2,
	CALLCHAIN_FRAME_ROOT = 4, /* first function of a thread: nothing calls it */
	CALLCHAIN_FRAME_IDLE = 8, /* the idle loop */
};

#define CALLCHAIN_FRAME_INLINED_MAX 64 /* frames inlined into the frame of one address */

/* The frames made for one address, and their meaning for the stack. */
struct callchain_frame {
	uint32_t frame; /* of the function that contains the address */
	uint8_t flags;  /* enum callchain_frame_flag; the same for each address of the frame */
	/*
	 * The address may have another frame at another time, so results that use this one are not
	 * kept.
	 */
	bool timed;
	uint32_t ninlined; /* user code only: functions inlined there, outermost first */
	uint32_t inlined[CALLCHAIN_FRAME_INLINED_MAX];
};

#endif
