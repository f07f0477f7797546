/*
 * Turns callchains into stacks of the profile. Three caches avoid repeated lookups: frames by
 * address, callers that a thread shares with its last sample, and kernel parts. A kernel part is
 * cached whole, because it repeats under many user parts.
 */
#ifndef SYMBOLS_CALLCHAINS_H
#define SYMBOLS_CALLCHAINS_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "symbols/callchain_frame.h"
#include "symbols/core/processes.h"

#include <stdbool.h>
#include <stdint.h>

#define CALLCHAINS_FRAMES_MAX 10000   /* frames of a stack, by default */
#define CALLCHAINS_FRAMES_LIMIT 65536 /* largest value of callchains.frames_max */
#define CALLCHAINS_RECENT 64          /* threads whose last user part is kept */
/*
 * Addresses whose frames are cached: as many as fit a processor's second-level cache. A power of
 * two.
 */
#define CALLCHAINS_CACHE 32768u

/*
 * Words of kernel parts, and stacks of callchains with one, that are kept. At the limit the cache
 * is emptied: common entries come back at once. A recording in which no callchain repeats costs 12
 * bytes a word, up to this limit.
 */
#define CALLCHAINS_KEPT_MAX ((size_t)4 << 20)

enum callchain_mode { CALLCHAIN_USER, CALLCHAIN_KERNEL, CALLCHAIN_NEITHER };

#define CALLCHAIN_NO_FRAME UINT32_MAX

/* A callchain as it was recorded or unwound. */
struct callchain {
	const uint64_t *words; /* leaf first, with PERF_CONTEXT_* marks */
	size_t n;
	enum callchain_mode mode; /* mode before the first mark */
	/* Callers are addresses of calls, as in stacks that perf unwinds; else return addresses. */
	bool at_call_sites;
	bool truncated; /* callers are missing at the root */
	/*
	 * From these user frames on, counted from the leaf, frames were spliced or guessed.
	 * CALLCHAIN_NO_FRAME: none, or not wanted. A frame that is both counts as spliced.
	 */
	uint32_t first_spliced, first_guess;
};

/*
 * An address becomes a frame of the profile, or with this bit an index into runs, which holds
 * several frames.
 */
#define CALLCHAINS_RUN 0x80000000u

struct callchain_stack {
	uint32_t stack;
	bool user; /* has user frames */
	bool idle; /* ends in the idle loop */
};

/*
 * A callchain whose user part already has a stack. Its kernel part can be named later, while no
 * record changes the kernel's maps and symbols.
 */
struct callchain_half {
	uint32_t stack;  /* of the user part; of the whole callchain if it has no kernel part */
	uint32_t kernel; /* index into kernels; CALLCHAINS_NO_KERNEL: the stack is whole */
	bool user, idle;
	bool cut; /* memory is short: the stack has fewer frames */
};

#define CALLCHAINS_NO_KERNEL UINT32_MAX

/* Key of a lookup: the address, the address space (a thread's, or the kernel's) and the time. */
struct callchain_key {
	const struct process_thread *thread;
	uint64_t ip;
	enum callchain_mode mode;
	bool exact;    /* ip is where code ran; else a return address */
	uint8_t grade; /* enum frame_grade */
	uint64_t time_ns;
};

/*
 * Makes the frame of an address. A frame that is not timed holds until the address space changes.
 * It may be called again for the same address. Returns 0, -ENOMEM, -E2BIG.
 */
typedef int callchains_frame_fn(void *ctx, const struct callchain_key *place,
				struct callchain_frame *ret_frame);

/*
 * The frame of an address in one state of an address space. The newest entry of a slot replaces the
 * older one.
 */
struct callchain_slot {
	uint64_t ip;
	uint32_t space; /* callchains_space; 0: free */
	uint32_t ref;   /* a frame or a run */
};

/* A frame of a thread's last callchain, and the stack that ends with it. */
struct callchain_recent_frame {
	uint64_t word;
	uint32_t stack;
};

/* The user part of a thread's last callchain, root first. */
struct callchain_recent {
	uint32_t space;
	bool leaf; /* the last frame is the leaf */
	bool truncated;
	uint32_t spliced, guessed;                 /* spliced and guessed frames at the root */
	VEC(struct callchain_recent_frame) frames; /* the frames that are kept */
};

/* A kernel part: its words leaf first, and once they are looked up its frames root first. */
struct callchain_kernel {
	uint32_t first, n;   /* index in kernel_words and kernel_frames */
	uint32_t generation; /* kernel_generation of its lookups */
	bool made, idle;
	bool timed; /* made for one time only */
};

struct callchains {
	struct profile *profile; /* borrowed, as is processes */
	struct processes *processes;
	callchains_frame_fn *frame;
	void *ctx;
	size_t kept_max; /* replaces CALLCHAINS_KEPT_MAX; 0: the default */
	/* Frames of a stack; further frames at the root are cut off. 0: CALLCHAINS_FRAMES_MAX. */
	size_t frames_max;
	/* The caller changes it whenever a kernel address may have another frame than before. */
	uint32_t kernel_generation;
	uint64_t cut; /* callchains whose stacks have fewer frames, because memory is short */
	/* The rest is private. */
	size_t cut_max; /* frames of a cut stack; 0: the stack is not cut */
	bool timed;     /* a frame was timed since this was cleared */
	/* The stack of only the mark PROFILE_TRUNCATED; PROFILE_STACK_EMPTY: not made yet. */
	uint32_t truncated_root;
	struct callchain_slot *cache; /* CALLCHAINS_CACHE entries */
	/* enum callchain_frame_flag by frame of the profile, for frames made here */
	VEC(uint8_t) frame_flags;
	struct callchain_recent *recent; /* CALLCHAINS_RECENT entries, by tid */
	struct hashmap kernel_ids;       /* hash of the words -> index into kernels */
	VEC(struct callchain_kernel) kernels;
	/*
	 * callchains with a kernel part that were begun and not ended; kernels stays while there
	 * are any
	 */
	size_t begun;
	VEC(uint64_t) kernel_words;
	VEC(uint32_t) kernel_frames;
	/* For addresses with inlined frames: the number of frames, then the frames, root first. */
	VEC(uint32_t) runs;
	struct hashmap run_ids;   /* hash of a run -> its index */
	struct hashmap under_ids; /* stack of the user part and index into kernels -> whole stack */
	VEC(uint32_t) refs; /* scratch for one odd callchain while it becomes frames, leaf first */
};

void callchains_free(struct callchains *c);

static inline size_t callchains_kept_max(const struct callchains *c)
{
	return c->kept_max ? c->kept_max : CALLCHAINS_KEPT_MAX;
}

/* Whether the caller should end what it began, so that memory does not grow. */
static inline bool callchains_full(const struct callchains *c)
{
	return c->kernel_words.len >= callchains_kept_max(c);
}

/*
 * Begins with a callchain. One that is truncated, or has more than frames_max frames, gets the mark
 * PROFILE_TRUNCATED as its root. So does one that is cut because memory is short. Returns 0,
 * -ENOMEM, -E2BIG.
 */
int callchains_begin(struct callchains *c, const struct process_thread *thread,
		     const struct callchain *chain, uint64_t time_ns,
		     struct callchain_half *ret_half);

/* Gets the stack of a callchain that was begun at that time. As callchains_begin. */
int callchains_end(struct callchains *c, const struct callchain_half *half, uint64_t time_ns,
		   struct callchain_stack *ret_stack);

#endif
