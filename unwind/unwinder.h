/*
 * Whole stacks for samples that carry registers and a copy of their stack: follows the processes of a recording, knows the code of their
 * images and of what their runtimes compile, and turns each sample's callchain into one from the sampled instruction to the start of the
 * thread. The same while recording and afterwards. One thread uses it.
 */
#ifndef UNWIND_UNWINDER_H
#define UNWIND_UNWINDER_H

#include "container/opener.h"
#include "recording/perfdata.h"
#include "unwind/jit_codes.h"
#include "unwind/walk.h"

struct unwinder;

struct unwinder_options {
	struct opener *opener; /* borrowed; NULL: files by path, in our own root */
	bool recorded_elsewhere; /* on another machine: its vdso is not ours */
	size_t frames_max; /* user frames of a stack; 0: WALK_FRAMES_MAX */
	/* Asks for the code that a process made at addr; unwinder_code gives the answer, not from within. False: nobody can be asked. NULL:
	 * nobody can. */
	bool (*ask)(void *ctx, int32_t pid, uint64_t addr);
	void *ctx;
};

/* 0 or -ENOMEM. */
int unwinder_new(const struct unwinder_options *options, struct unwinder **ret_unwinder);
void unwinder_free(struct unwinder *u);

/* Takes in a record that is no sample: MMAP, MMAP2, COMM, FORK, EXIT; ignores others. 0 or -ENOMEM. */
int unwinder_apply(struct unwinder *u, const struct perfdata_record *record);

/* Build ids of the recording's header, for map records that carry none. 0, -ENOMEM. */
int unwinder_build_id(struct unwinder *u, const char *path, const struct perfdata_build_id *id);

/* The answer to a question (struct unwinder_options); code: as jit_codes_put. 0 or -ENOMEM. */
int unwinder_code(struct unwinder *u, int32_t pid, uint64_t addr, struct jit_code *code, uint64_t now_ns);

/* How much a stack is to be trusted. */
enum unwind_grade {
	UNWIND_NO_STACK, /* it has no user part, or nothing that could be unwound */
	UNWIND_COMPLETE, /* to the start of the thread, by rules or frame pointers in the copy */
	UNWIND_SPLICED, /* to the start of the thread, the last part on the kernel's chain */
	UNWIND_GUESSED, /* to the start of the thread, over frames that were guessed */
	UNWIND_TRUNCATED, /* not to the start of the thread */
	UNWIND_GRADES,
};

/* "complete", "spliced", "guessed", "truncated", "none". Static. */
const char *unwind_grade_text(enum unwind_grade grade);

struct unwinder_sample {
	int32_t pid, tid;
	uint64_t time_ns;
	const uint64_t *regs; /* user_regs of a sample, with its attr.sample_regs_user as regs_mask */
	uint64_t regs_mask;
	uint64_t abi; /* PERF_SAMPLE_REGS_ABI_* */
	const void *stack;
	size_t stack_bytes;
	const uint64_t *callchain; /* as recorded, with marks; may be empty */
	size_t ncallchain;
	bool in_kernel; /* it was there, though its callchain has nothing of it */
	bool last; /* not later once more: what is not known by now is not waited for */
};

struct unwound {
	/* With marks; valid until the next call. Callers stand where they call, one byte before where they will go on, as perf has what it unwinds: a
	 * call may be the last instruction of its function. Of UNWIND_NO_STACK: as it was recorded. */
	const uint64_t *callchain;
	size_t ncallchain;
	uint8_t grade; /* enum unwind_grade */
	/* enum walk_end: why it is truncated; of a spliced one why the rules ended. With UNWIND_NO_STACK: WALK_NO_RULE, it is of a 32-bit program,
	 * whose chain is the kernel's. */
	uint8_t end;
	uint16_t first_spliced, first_guess; /* user frames from this one on, counted from the leaf; UINT16_MAX: none */
	uint32_t reached; /* bytes of the copy of the stack that had to be there */
	bool edge; /* the copy ended before the stack did */
};

/* 0; -EAGAIN: code of a frame is not known yet, and it is not the last time; -ENOMEM. */
int unwinder_sample(struct unwinder *u, const struct unwinder_sample *sample, struct unwound *ret_unwound);

struct unwinder_stats {
	uint64_t grades[UNWIND_GRADES], ends[WALK_ENDS]; /* of samples */
	uint64_t frames[WALK_GUESS + 1]; /* by enum walk_how */
	uint64_t steps_full; /* that rules alone could not make */
	uint64_t images, images_missing; /* whose code was needed; that could not be read */
};
struct unwinder_stats unwinder_stats(const struct unwinder *u);

#endif
