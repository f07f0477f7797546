/*
 * Makes whole stacks from samples that carry registers and a copy of their stack. It finds the code
 * of the images of processes (symbols/tracker.h, image_code.h) and of their runtimes
 * (jit_codes.h). Each sample's callchain becomes one from the sampled instruction to the start of
 * the thread. Each stack gets a grade, how far it can be trusted, and the reason of its end
 * (walk.h). It works the same while recording and afterwards. One thread uses it.
 */
#ifndef UNWIND_UNWINDER_H
#define UNWIND_UNWINDER_H

#include "base/clock.h"
#include "container/opener.h"
#include "recording/limits.h"
#include "recording/perfdata.h"
#include "symbols/tracker.h"
#include "unwind/jit_codes.h"
#include "unwind/walk.h"

/* An image that no sample asked for in this time is closed. Samples give the time. */
#define UNWINDER_IMAGE_IDLE_NS (60 * NS_PER_S)

struct unwinder;

struct unwinder_options {
	/* Borrowed. NULL: the unwinder follows the processes itself, by unwinder_apply. */
	const struct tracker *tracker;
	struct opener *opener;   /* borrowed; NULL: open files by path in our own root */
	bool recorded_elsewhere; /* on another machine: its vdso is not ours */
	size_t frames_max;       /* user frames of a stack; 0: WALK_FRAMES_MAX */
	uint64_t memory; /* bytes that are left, which may shrink limits; 0: memory_left() */
	/*
	 * Requests the code that a process made at addr. Pass it to unwinder_add_code later, never
	 * inside this call. False: it will not come. NULL: such code stays unknown.
	 */
	bool (*request_code)(void *ctx, int32_t pid, uint64_t addr);
	/*
	 * Opens the file of an image of tracker, so that naming and unwinding open it once. Returns
	 * 0, -ENOENT, -ENOMEM, -errno. NULL: the unwinder opens it.
	 */
	int (*open_file)(void *ctx, uint32_t image, int *ret_fd);
	void *ctx;
};

/* Returns 0 or -ENOMEM. */
int unwinder_new(const struct unwinder_options *options, struct unwinder **ret_unwinder);
void unwinder_free(struct unwinder *u);

/* Only without options.tracker. Applies a record as tracker_apply. Returns 0 or -ENOMEM. */
int unwinder_apply(struct unwinder *u, const struct perfdata_record *record);

/*
 * Whether the process of a record has no more use for code that it made: it has ended, or executes
 * another program. Call it after unwinder_apply, which forgets the code.
 */
bool unwinder_forgets_code(const struct unwinder *u, const struct perfdata_record *record);

/* Takes the code that was requested at addr. code: see jit_codes_put. Returns 0 or -ENOMEM. */
int unwinder_add_code(struct unwinder *u, int32_t pid, uint64_t addr, struct jit_code *code,
		      uint64_t now_ns);

/* How far a stack can be trusted. */
enum unwind_grade {
	UNWIND_NO_STACK,  /* no user part, or one that cannot be unwound */
	UNWIND_COMPLETE,  /* to the start of the thread, by rules or frame pointers in the copy */
	UNWIND_SPLICED,   /* to the start of the thread, the last part on the kernel's chain */
	UNWIND_GUESSED,   /* to the start of the thread, across guessed frames */
	UNWIND_TRUNCATED, /* ends before the start of the thread */
	UNWIND_GRADES,
};

/* "complete", "spliced", "guessed", "truncated", "none". Static. */
const char *unwind_grade_text(enum unwind_grade grade);

struct unwinder_sample {
	int32_t pid, tid;
	uint64_t time_ns;
	const uint64_t *regs; /* the sample's user registers */
	uint64_t regs_mask;   /* its attr.sample_regs_user */
	uint64_t abi;         /* PERF_SAMPLE_REGS_ABI_* */
	const void *stack;
	size_t stack_bytes;
	const uint64_t *callchain; /* as recorded, with context marks; may be empty */
	size_t ncallchain;
	bool in_kernel; /* from the kernel, although its callchain has no kernel part */
	/*
	 * The architecture of the registers, as uname(2) names it. Stacks without own rules are
	 * then walked by libdw, slowly. NULL: ARCH_NAME, and only own rules.
	 */
	const char *libdw_arch;
	bool last; /* do not wait for unknown code: the sample does not come again */
};

struct unwound {
	/*
	 * With context marks; valid until the next call. A caller's address is one byte before its
	 * return address, as in perf's unwound callchains: a call may be the last instruction of
	 * its function. It is the recorded callchain with UNWIND_NO_STACK, and while recording for
	 * processes of other PID namespaces (truncated, WALK_NO_RULE).
	 */
	const uint64_t *callchain;
	size_t ncallchain;
	uint8_t grade; /* enum unwind_grade */
	/*
	 * enum walk_end: why the stack is truncated, or why the rules of a spliced one ended. With
	 * UNWIND_NO_STACK, WALK_NO_RULE means a 32-bit program; its chain is the kernel's.
	 */
	uint8_t end;
	/* The first frames of that kind; user frames count from the leaf; UINT16_MAX: none. */
	uint16_t first_spliced, first_guess;
	uint8_t limit;    /* enum recording_limit that left it incomplete; LIMITS: none */
	uint32_t reached; /* bytes of the stack copy that were needed */
	bool edge;        /* the copy ended before the stack did */
};

/* The number of words before the mark of a callchain's user part; n: it has none. */
size_t unwinder_kernel_words(const uint64_t *callchain, size_t n);

/* The sampled instruction of the user part. False: its registers lack it, or are unknown here. */
bool unwinder_sampled_ip(const struct unwinder_sample *sample, uint64_t *ret_ip);

/* Returns 0; -EAGAIN: the code of a frame is not known yet, and sample->last is false; -ENOMEM. */
int unwinder_sample(struct unwinder *u, const struct unwinder_sample *sample,
		    struct unwound *ret_unwound);

struct unwinder_stats {
	uint64_t grades[UNWIND_GRADES], ends[WALK_ENDS]; /* samples */
	uint64_t frames[WALK_GUESS + 1];                 /* by enum walk_how */
	uint64_t steps_full;                             /* steps that plain rules could not make */
	uint64_t images, images_missing; /* images whose code was needed; those once unreadable */
	/* Incomplete stacks: with frames in files that lack rules for a limit (LIMIT_OPEN_FILES,
	 * LIMIT_FILE_SIZE, LIMIT_LIBDW_RULES), whose rules took too long (LIMIT_FILE_SIZE), and
	 * those that LIMIT_LIBDW_PROCESS ended. */
	struct recording_limits limits;
};
struct unwinder_stats unwinder_stats(const struct unwinder *u);

#endif
