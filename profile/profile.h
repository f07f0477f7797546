/*
 * The model: what a recording says, in the one shape that folding, drawing, reports and exports read.
 *
 * Frames are code locations (an address with everything that is known of its name, in both forms); stacks are a trie of
 * frames, so that stacks share their callers; samples are columns of 16 bytes. All parts are referred to by dense 32-bit
 * ids in order of arrival; texts are interned. Nothing is turned into output text here.
 *
 * Memory grows with distinct frames and stacks, plus 16 bytes a sample, which go to an unlinked temporary file when they
 * pass PROFILE_SAMPLES_IN_MEMORY. Not safe for several threads at once.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

#define PROFILE_NONE UINT32_MAX /* no text, no line */
#define PROFILE_STACK_EMPTY 0u /* the root of the stack trie: no frame */
#define PROFILE_SAMPLES_IN_MEMORY ((size_t)4 << 20) /* 64 MiB */
#define PROFILE_EVENTS_MAX 4096

enum frame_kind {
	FRAME_UNKNOWN, /* no mapping covers the address */
	FRAME_KERNEL,
	FRAME_NATIVE,
	FRAME_RUNTIME, /* the .NET runtime's own native code: libcoreclr.so, libclrjit.so, ... and its stubs */
	FRAME_MANAGED, /* JIT-compiled or precompiled (R2R) methods; other runtimes' JIT code too */
	/* No code, but there by their names. */
	FRAME_IDLE, /* what waits that are idle are shown as */
	FRAME_LABEL, /* stands for what has no stack */
	FRAME_WAKEUP, /* parts sleepers and wakers, or names these (profcpu/wakeups.h) */
	FRAME_KINDS,
};

static inline bool frame_kind_is_code(uint8_t kind)
{
	return kind < FRAME_IDLE;
}

/* How well a frame is known; the audit counts these. */
enum frame_status {
	FRAME_IS_UNKNOWN,
	FRAME_IS_PLACED, /* module and function bounds known, name not */
	FRAME_IS_NAMED,
};

/* How a frame was found, where that is asked for. */
enum frame_grade {
	FRAME_FOUND, /* by rules, or frame pointers where those are known to hold; or nobody asked */
	FRAME_SPLICED, /* on the kernel's chain of frame pointers, behind what could be unwound */
	FRAME_GUESSED, /* it, or one that it was called through, is a word of the stack that may be a return address */
};

#define PROFILE_TRUNCATED "[truncated]" /* the mark at the root of a stack whose further callers are not known */

/* One code location. Text fields are ids of profile_text. Frames with equal fields are one frame. */
struct profile_frame {
	/* The ip (leaf) or return address (callers) as perf script prints it: the offset in the file where one is mapped,
	 * else the address in the running process. 0: not known. */
	uint64_t addr;
	uint64_t sym_off; /* addr less the function's start; 0 with has_sym_off false: not known */
	uint32_t perf_name; /* the symbol as perf script prints it, without "+0x.." ; PROFILE_NONE: perf says [unknown] */
	uint32_t name; /* the full form of DESIGN.md; never PROFILE_NONE: placed frames have "[module+0x..]" */
	uint32_t module; /* what perf script prints in parentheses, "[unknown]", "[kernel.kallsyms]", a path; PROFILE_NONE: none */
	uint32_t srcline; /* "file.c:12" or PROFILE_NONE */
	uint8_t kind; /* enum frame_kind */
	uint8_t status; /* enum frame_status */
	uint8_t source; /* enum symbol_source of symbols/symbol.h; 0: none */
	bool has_sym_off;
	bool inlined; /* this is a body inlined into its caller, the next frame towards the root */
	/* Only from odd text: addr is not an address but the text id of the word that stood in its place. */
	bool addr_is_text;
	uint8_t grade; /* enum frame_grade; the full form shows it as "_[s]" or "_[g]" behind the name */
	bool is_mark; /* it is no code but says something of its stack, by its name; the perf form leaves it out */
};

/* The full form's "_[s]", "_[g]", or "". Static. */
const char *profile_grade_mark(uint8_t grade);

/* A thread while it had one name: exec and prctl make a new entry. pid is the process (thread group), -1: not known. */
struct profile_thread {
	int32_t pid, tid;
	uint32_t comm; /* text */
	/* 1: pid 0 that is not the idle task but a process of another PID namespace than the recorder's. The perf form
	 * says "swapper" (comm), the full form "[other pid namespace]". Else 0. */
	uint32_t other_pid_ns;
	/* Only from odd text: 1 + the text id of the digits that pid and tid cannot hold, "PID/TID" or "TID". Else 0. */
	uint32_t ids_text;
};

struct profile_event {
	uint32_t name; /* text, as perf spells it: "cpu-clock", "cycles:u" */
	bool has_period; /* samples carry a weight other than 1 (nanoseconds for clocks, counts for counters) */
	/* perf script prints fields of the event's own after the name (tracepoints do): stackcollapse-perf.pl then sees no
	 * event in the line, so that the sample counts 1 and passes each filter. */
	bool has_fields;
	/* Sampled without callchains, a stack is the ip alone. perf script prints such samples in one line each, in which
	 * stackcollapse-perf.pl finds nothing. */
	bool stackless;
	bool wakeup; /* with off_cpu: of who ended waits (profcpu/wakeups.h) */
	bool off_cpu; /* weights are the nanoseconds in which threads did not run: an output of its own, never the first event */
};

/* Whether some event is not stackless, so that perf script's readers see that one only. */
bool profile_has_stacks(const struct profile *p);

/* The event of the time off the CPU, or PROFILE_NONE; that of who ended waits. */
uint32_t profile_off_cpu_event(const struct profile *p);
uint32_t profile_wakeup_event(const struct profile *p);

struct profile_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC of the recording, or what the source had; 0: not known */
	uint64_t weight; /* the period; 1 where the event has none */
	uint32_t event, thread, stack; /* ids */
	int32_t cpu; /* -1: not known */
};

int profile_new(struct profile **ret_profile); /* 0 or -ENOMEM */
void profile_free(struct profile *p);

/* Interns text. 0, -ENOMEM, -E2BIG (over 1 MiB or too many). Equal texts have equal ids. */
int profile_text(struct profile *p, const char *text, size_t len, uint32_t *ret_text);
const char *profile_text_of(const struct profile *p, uint32_t text, uint32_t *ret_len); /* ret_len may be NULL */

/* Each interns its argument (by value) and gives its id. 0, -ENOMEM, -E2BIG. */
int profile_event(struct profile *p, const struct profile_event *event, uint32_t *ret_event);
int profile_thread(struct profile *p, const struct profile_thread *thread, uint32_t *ret_thread);
int profile_frame(struct profile *p, const struct profile_frame *frame, uint32_t *ret_frame);

/* The stack that is `frame` on top of (called by) `parent`. 0, -ENOMEM, -E2BIG. parent < *ret_stack always. */
int profile_stack(struct profile *p, uint32_t parent, uint32_t frame, uint32_t *ret_stack);

/* The frame of a kind (enum frame_kind) that is no code. As profile_frame. */
int profile_label_frame(struct profile *p, const char *name, size_t len, uint8_t kind, uint32_t *ret_frame);

/* A stack of one such frame: "[idle]". As profile_stack. */
int profile_label(struct profile *p, const char *name, uint8_t kind, uint32_t *ret_stack);

#define PROFILE_NO_STACK "[no stack]" /* FRAME_LABEL: waits of which none is known, samples on a CPU in wall.folded */

/* Appends. 0, -ENOMEM, or -errno of the temporary file. Order of calls is kept; time need not rise. */
int profile_sample(struct profile *p, const struct profile_sample *sample);

/* The parts by id; valid until the next call that adds one. Ids run from 0 (stacks from 1) to the count. */
const struct profile_event *profile_event_of(const struct profile *p, uint32_t event);
const struct profile_thread *profile_thread_of(const struct profile *p, uint32_t thread);
const struct profile_frame *profile_frame_of(const struct profile *p, uint32_t frame);
uint32_t profile_stack_parent(const struct profile *p, uint32_t stack);
uint32_t profile_stack_frame(const struct profile *p, uint32_t stack); /* not for PROFILE_STACK_EMPTY */
uint32_t profile_nevents(const struct profile *p);
uint32_t profile_nthreads(const struct profile *p);
uint32_t profile_nframes(const struct profile *p);
uint32_t profile_nstacks(const struct profile *p); /* with the empty one */
uint64_t profile_nsamples(const struct profile *p);

/* Its samples (0 where there is no such event) and the sum of their weights. As profile_each_sample. */
int profile_off_cpu_sum(struct profile *p, uint64_t *ret_samples, uint64_t *ret_weight);

/* Goes through all samples in the order of their arrival. fn gives 0 to go on; anything else stops and is returned. */
int profile_each_sample(struct profile *p, int (*fn)(void *ctx, const struct profile_sample *sample), void *ctx);

/*
 * Samples of equal event, thread and stack, summed (weights stop at UINT64_MAX); the shape from which trees and folded
 * text are made.
 */
struct profile_group {
	uint32_t event, thread, stack;
	uint32_t pad;
	uint64_t weight, samples;
};

/*
 * All groups in order of first arrival; the caller frees *ret_groups. thread_as: by thread the one that its samples are
 * counted for; NULL: itself. 0, -ENOMEM, -errno of the temporary file.
 */
int profile_groups(struct profile *p, const uint32_t *thread_as, struct profile_group **ret_groups, size_t *ret_n);

#endif
