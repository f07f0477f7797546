/*
 * From callchains to stacks of the profile. What a callchain has in common with a recent one is not looked up again: frames
 * of addresses are kept in a cache, the callers that a thread still has from its sample before keep their stacks,
 * and the kernel's part is kept by itself, as it repeats under many different user parts.
 */
#ifndef SYMBOLS_CALLCHAINS_H
#define SYMBOLS_CALLCHAINS_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "symbols/processes.h"

#include <stdbool.h>
#include <stdint.h>

#define CALLCHAINS_FRAMES_MAX 10000 /* of a stack, if nobody says otherwise */
#define CALLCHAINS_FRAMES_LIMIT 65536 /* and whoever says */
#define CALLCHAINS_RECENT 64 /* threads whose last user part is kept */
#define CALLCHAINS_CACHE 32768u /* addresses whose frames are kept: what a processor's second cache holds; a power of two */

/* Words of kernel parts, and stacks of callchains, that are kept; then it is begun anew. Common ones are met again at once, and a
 * recording in which none repeats costs no more memory than this, 12 bytes for each word. */
#define CALLCHAINS_KEPT_MAX ((size_t)4 << 20)

enum callchain_mode { CALLCHAIN_USER, CALLCHAIN_KERNEL, CALLCHAIN_NEITHER };

#define CALLCHAIN_NO_FRAME UINT32_MAX

/* A callchain as it was recorded or unwound. */
struct callchain {
	const uint64_t *words; /* leaf first, with PERF_CONTEXT_* marks */
	size_t n;
	enum callchain_mode mode; /* before the first mark */
	bool at_calls; /* callers are where they call, as perf has what it unwinds, and not where they will go on */
	bool truncated; /* callers are missing at the root */
	/* The user frames from these on, counted from the leaf, were spliced or guessed; CALLCHAIN_NO_FRAME: none, or nobody
	 * asks. A frame that is both is spliced. */
	uint32_t first_spliced, first_guess;
};

#define CALLCHAINS_INLINED_MAX 64 /* frames inlined into that of one address */

/* The frames as they were made for an address, and what they say of their stack. */
struct callchain_frame {
	uint32_t frame; /* of the function whose code it is */
	uint8_t flags; /* enum frames_flag; the same for each address of the frame */
	bool timed; /* at another time the address may have another one: what hangs on it is not kept */
	uint32_t ninlined; /* user code only: what was inlined there, the outermost first */
	uint32_t inlined[CALLCHAINS_INLINED_MAX];
};

/* What an address became: a frame of the profile, or with this bit the place of several in runs. */
#define CALLCHAINS_RUN 0x80000000u

struct callchain_stack {
	uint32_t stack;
	bool user; /* has user frames */
	bool idle; /* ends in the idle loop */
};

/*
 * A callchain of which the user part has its stack. The kernel's part can be named later, as long as no record changes
 * what lies in the kernel.
 */
struct callchain_half {
	uint32_t stack; /* of the user part; of the whole where there is no kernel part */
	uint32_t kernel; /* in kernels; CALLCHAINS_NO_KERNEL: all is done */
	bool user, idle;
};

#define CALLCHAINS_NO_KERNEL UINT32_MAX

/* A question: which frame is an address of a thread's address space, or of the kernel, at a time. */
struct callchain_place {
	const struct process_thread *thread;
	uint64_t ip;
	enum callchain_mode mode;
	bool exact; /* ip is where code was, not where it will return to */
	uint8_t grade; /* enum frame_grade */
	uint64_t time_ns;
};

/* Answers it. An answer that is not timed holds as long as the address space stays what it is; it can be asked for again. 0,
 * -ENOMEM, -E2BIG. */
typedef int callchains_frame_fn(void *ctx, const struct callchain_place *place, struct callchain_frame *ret_frame);

/* The frame of an address in one state of an address space. The last one that came to a place of the cache has it. */
struct callchain_slot {
	uint64_t ip;
	uint32_t space; /* callchains_space; 0: free */
	uint32_t what; /* a frame or a run */
};

/* A frame of a thread's last callchain, and the stack at it. */
struct callchain_kept {
	uint64_t word;
	uint32_t stack;
};

/* The user part of a thread's last callchain, root first. */
struct callchain_recent {
	uint32_t space;
	bool leaf; /* the last of them is the leaf */
	bool truncated;
	uint32_t spliced, guessed; /* how many at the root are */
	VEC(struct callchain_kept) frames; /* those that are kept */
};

/* A kernel part: its words leaf first, and once they were asked for its frames root first. */
struct callchain_kernel {
	uint32_t first, n; /* in kernel_words and kernel_frames */
	bool made, idle;
	bool timed; /* made for one time only */
};

struct callchains {
	struct profile *profile; /* borrowed, as processes */
	struct processes *processes;
	callchains_frame_fn *frame;
	void *ctx;
	size_t kept_max; /* instead of CALLCHAINS_KEPT_MAX; 0: that */
	size_t frames_max; /* of a stack: what is beyond, at the root, is cut off; 0: CALLCHAINS_FRAMES_MAX */
	uint32_t kernel_generation; /* changes whenever a kernel address may have another answer than before */
	/* The rest is private. */
	bool timed; /* an answer since this was cleared is */
	uint32_t truncated_root; /* the stack of the mark PROFILE_TRUNCATED alone; PROFILE_STACK_EMPTY: not made yet */
	struct callchain_slot *cache; /* CALLCHAINS_CACHE */
	VEC(uint8_t) frame_flags; /* enum frames_flag, by frame of the profile, of those that were made here */
	struct callchain_recent *recent; /* CALLCHAINS_RECENT, by tid */
	struct hashmap kernel_ids; /* hash of the words -> index into kernels */
	VEC(struct callchain_kernel) kernels;
	size_t begun; /* callchains with a kernel part that were not ended: it must stay */
	VEC(uint64_t) kernel_words;
	VEC(uint32_t) kernel_frames;
	VEC(uint32_t) runs; /* of addresses with inlined frames: their number, then the frames, root first */
	struct hashmap run_ids; /* hash of a run -> its place */
	struct hashmap under_ids; /* stack of the user part and index into kernels -> whole stack */
	struct hashmap odd_ids; /* of other callchains: hash of the words -> index into odd */
	VEC(struct callchain_stack) odd;
	VEC(uint32_t) whats; /* of an odd callchain while it is turned into frames, leaf first */
};

void callchains_free(struct callchains *c);

static inline size_t callchains_kept_max(const struct callchains *c)
{
	return c->kept_max ? c->kept_max : CALLCHAINS_KEPT_MAX;
}

/* Whether what was begun should be ended now, so that memory does not grow. */
static inline bool callchains_full(const struct callchains *c)
{
	return c->kernel_words.len >= callchains_kept_max(c);
}

/* Begins with a callchain. One that is truncated, or has more than frames_max frames, gets the mark PROFILE_TRUNCATED for its root.
 * 0, -ENOMEM, -E2BIG. */
int callchains_begin(struct callchains *c, const struct process_thread *thread, const struct callchain *chain, uint64_t time_ns,
		     struct callchain_half *ret_half);

/* The stack of what was begun at that time. As callchains_begin. */
int callchains_end(struct callchains *c, const struct callchain_half *half, uint64_t time_ns,
		   struct callchain_stack *ret_stack);

#endif
