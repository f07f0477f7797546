/*
 * A profile: the contents of a recording in the one form that folding, pictures, reports and
 * exports read.
 *
 * A frame is a code location: an address with both forms of its name. Stacks are a trie of frames,
 * so that stacks share their callers. A sample takes 16 bytes. All parts have dense 32-bit ids in
 * the order in which they were added; texts are interned. This module creates no output text.
 *
 * Memory grows with the number of distinct frames, stacks and groups, plus 16 bytes for each sample
 * unless profile_only_groups was called. profile_limit_memory bounds texts, threads, frames and
 * stacks. Samples go to an unlinked temporary file after SAMPLES_IN_MEMORY_MAX. Not thread-safe.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "profile/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct profile;

#define PROFILE_NONE UINT32_MAX /* no text, or no source line */
#define PROFILE_STACK_EMPTY 0u  /* root of the stack trie: no frames */
#define PROFILE_EVENTS_MAX 4096

enum frame_kind {
	FRAME_UNKNOWN, /* no mapping covers the address */
	FRAME_KERNEL,
	FRAME_NATIVE,
	/* Native code of the .NET runtime (libcoreclr.so, libclrjit.so, ...) and its stubs. */
	FRAME_RUNTIME,
	/* Methods, JIT-compiled or precompiled (R2R); JIT-compiled code of other runtimes too. */
	FRAME_MANAGED,
	/* Not code, only names: */
	FRAME_IDLE,     /* stands for the stacks of idle waits */
	FRAME_LABEL,    /* stands for a missing stack */
	FRAME_RUNNABLE, /* above the stack of a wait: its time without a CPU */
	FRAME_SUBJECT,  /* above a stack: what an event is about, or what a thread did */
	FRAME_WAKEUP, /* separates sleepers from wakers, or names these (profcpu/post/wakeups.h) */
	FRAME_KINDS,
};

static inline bool frame_kind_is_code(uint8_t kind)
{
	return kind < FRAME_IDLE;
}

/* How much is known about a frame. The audit counts these. */
enum frame_status {
	FRAME_IS_UNKNOWN,
	FRAME_IS_PLACED, /* module and function bounds known, but not the name */
	FRAME_IS_NAMED,
};

/* How the unwinder found a frame. */
enum frame_grade {
	FRAME_FOUND,   /* by rules or reliable frame pointers; also frames that were not unwound */
	FRAME_SPLICED, /* from the kernel's chain of frame pointers, after the unwound frames */
	FRAME_GUESSED, /* by scanning the stack for return addresses, here or nearer to the leaf */
};

/* Mark at the root of a stack whose further callers are unknown. */
#define PROFILE_TRUNCATED "[truncated]"

/* One code location. Text members are ids of profile_text. Equal frames have the same id. */
struct profile_frame {
	/*
	 * The ip (leaf) or return address (callers) as perf script prints it: the offset in the
	 * mapped file. If no file is mapped, the address in the process. 0: unknown.
	 */
	uint64_t addr;
	uint64_t sym_off; /* addr minus the function's start; unknown if has_sym_off is false */
	/* The symbol as perf script prints it, without "+0x.."; PROFILE_NONE: [unknown] in perf. */
	uint32_t perf_name;
	/*
	 * The name in the full form (--names full); never PROFILE_NONE; possibly "[module+0x..]".
	 */
	uint32_t name;
	/*
	 * The text that perf script prints in parentheses: a path, "[kernel.kallsyms]" or
	 * "[unknown]"; PROFILE_NONE: none.
	 */
	uint32_t module;
	uint32_t srcline; /* "file.c:12" or PROFILE_NONE */
	uint8_t kind;     /* enum frame_kind */
	uint8_t status;   /* enum frame_status */
	uint8_t source;   /* enum symbol_source of symbols/core/symbol.h; 0: none */
	bool has_sym_off;
	bool inlined; /* this function was inlined into its caller, the next frame to the root */
	/* addr is the text id of a word that is not an address; only from unusual text */
	bool addr_is_text;
	uint8_t grade; /* enum frame_grade; the full form shows it as "_[s]" or "_[g]" */
	bool is_mark;  /* not code: its name describes the stack; the perf form omits it */
};

/* Returns the suffix of a grade in the full form: "_[s]", "_[g]" or "". Static text. */
const char *profile_grade_mark(uint8_t grade);

/* Stands for the name of a process of another PID namespace. */
#define PROFILE_OTHER_PID_NS "[other pid namespace]"

/*
 * A thread while it had one name; exec and prctl make a new entry. pid is the process (thread
 * group); -1: unknown.
 */
struct profile_thread {
	int32_t pid, tid;
	uint32_t comm; /* text */
	/*
	 * 1: pid 0 stands for a process of another PID namespace, not for the idle task. The perf
	 * form prints "swapper" (comm), the full form PROFILE_OTHER_PID_NS. Otherwise 0.
	 */
	uint32_t other_pid_ns;
	/*
	 * 1 + the text id of "PID/TID" or "TID", if its digits do not fit pid and tid (only from
	 * unusual text). Otherwise 0.
	 */
	uint32_t ids_text;
};

struct profile_event {
	uint32_t name;   /* text in perf's spelling: "cpu-clock", "cycles:u" */
	bool has_period; /* samples have weights other than 1: ns for clocks, counts for counters */
	/*
	 * perf script prints the event's own fields after its name, for example for tracepoints.
	 * Then stackcollapse-perf.pl finds no event in the line. So each sample counts 1 and passes
	 * each filter.
	 */
	bool has_fields;
	/*
	 * Sampled without times, as by perf record --per-thread. Then perf script prints none, so
	 * stackcollapse-perf.pl finds no event either.
	 */
	bool timeless;
	/*
	 * Sampled without callchains: the stack is only the ip. perf script prints such samples in
	 * one line each, which stackcollapse-perf.pl ignores.
	 */
	bool stackless;
	bool wakeup; /* with off_cpu: samples of wakers (profcpu/post/wakeups.h) */
	/*
	 * Weights are the ns in which threads did not run. Such an event has its own output and is
	 * never the first event.
	 */
	bool off_cpu;
};

/* Whether the weights of an event with periods are ns, by its name. */
static inline bool profile_counts_time(const char *event)
{
	return strstr(event, "clock") || strstr(event, "time");
}

/* Returns whether any event has stacks. Readers of perf script's text see only such events. */
bool profile_has_stacks(const struct profile *p);

/* Return the event of the time off the CPU and that of wakers, or PROFILE_NONE. */
uint32_t profile_off_cpu_event(const struct profile *p);
uint32_t profile_wakeup_event(const struct profile *p);

/* 0 or -ENOMEM. */
int profile_new(struct profile **ret_profile);

/* Keeps only the groups of later samples. profile_each_sample must then not be called. */
void profile_only_groups(struct profile *p);

/*
 * Bounds the memory of texts, threads, frames and stacks by the memory that is left. The trees that
 * outputs make from them count, too. Each process has its share of texts and threads
 * (base/fair_share.h). memory_left returns bytes; it is called rarely.
 */
void profile_limit_memory(struct profile *p, uint64_t (*memory_left)(void));

/* Sets the process that new texts and threads count for: a PID, or another number that stands for
 * it. */
void profile_taker(struct profile *p, int32_t taker);

/*
 * If memory is short, profile_stack returns -E2BIG. Then try again with level 1, 2 and so on, until
 * it succeeds, and return to level 0. Returns how many innermost frames a stack may have at this
 * level, above the mark PROFILE_TRUNCATED; 0: no such level.
 */
size_t profile_cut_stacks(struct profile *p, unsigned level);
void profile_free(struct profile *p);

/*
 * Interns text in the form in which outputs show it; equal texts have equal ids. Texts come from
 * targets, so all of them pass here: bytes that a terminal must not get become "\x1b"
 * (base/printable.h). A text of more than PROFILE_TEXT_MAX bytes is cut to this size. Its end is
 * then
 * "..." and a hash of the whole text, so that different texts stay different. A shown text stays as
 * it is if it is interned again. Beyond the share of the process, new ones become PROFILE_LEFT_OUT.
 * 0, -ENOMEM, -E2BIG (too many texts).
 */
#define PROFILE_TEXT_MAX 4096
#define PROFILE_LEFT_OUT "[left out]"
int profile_text(struct profile *p, const char *text, size_t len, uint32_t *ret_text);

/* Interns printable lines, separated by '\n', as they are. 0, -ENOMEM, -E2BIG. */
int profile_lines(struct profile *p, const char *text, size_t len, uint32_t *ret_text);

/* Bytes of the longest text, before profile_cut_texts. */
uint32_t profile_longest_text(const struct profile *p);

/* Cuts longer texts to max bytes in the same way. max: at least 16. Not for profiles with lines. */
void profile_cut_texts(struct profile *p, uint32_t max);

/*
 * Numbers of distinct texts that profile_text and profile_cut_texts changed. A text can be in both.
 * max: the bytes to which long ones were cut.
 */
struct profile_text_changes {
	uint32_t escaped, cut, max;
};
struct profile_text_changes profile_text_changes(const struct profile *p);

/* Returns the text of an id. ret_len may be NULL. */
const char *profile_text_of(const struct profile *p, uint32_t text, uint32_t *ret_len);

/* Each interns a copy of its argument and returns its id. 0, -ENOMEM, -E2BIG. */
int profile_event(struct profile *p, const struct profile_event *event, uint32_t *ret_event);
/* Beyond the share of their process, new ones become one, PROFILE_LEFT_OUT with IDs of -1. */
int profile_thread(struct profile *p, const struct profile_thread *thread, uint32_t *ret_thread);
/* Beyond the memory for frames, those that differ only in addr and sym_off become one, with 0. */
int profile_frame(struct profile *p, const struct profile_frame *frame, uint32_t *ret_frame);

/* Calls that left out an address, a text or a thread for lack of memory. */
uint64_t profile_left_out(const struct profile *p);

/*
 * Finds or adds the stack in which `parent` calls `frame`. parent < *ret_stack always. 0, -ENOMEM;
 * -E2BIG: too many, see profile_cut_stacks.
 */
int profile_stack(struct profile *p, uint32_t parent, uint32_t frame, uint32_t *ret_stack);

/*
 * Finds or adds the stack of n frames, innermost first. truncated: its further callers are unknown,
 * so the mark PROFILE_TRUNCATED is at its root. If memory is short, keeps fewer frames and sets
 * *ret_cut. 0, -ENOMEM, -E2BIG.
 */
int profile_stack_of(struct profile *p, const uint32_t *frames, size_t n, bool truncated,
		     uint32_t *ret_stack, bool *ret_cut);

/* Finds or adds a frame that is not code. kind: enum frame_kind. Errors as profile_frame. */
int profile_label_frame(struct profile *p, const char *name, size_t len, uint8_t kind,
			uint32_t *ret_frame);

/* Finds or adds a stack of one such frame, for example "[idle]". Errors as profile_frame. */
int profile_label(struct profile *p, const char *name, uint8_t kind, uint32_t *ret_stack);

/*
 * Finds or adds the stack of a mark above `parent`: a frame that is not code and that the perf form
 * omits. kind: enum frame_kind. Errors as profile_frame; memory that is short is none.
 */
int profile_mark(struct profile *p, uint32_t parent, const char *name, uint8_t kind,
		 uint32_t *ret_stack);

/* Name of the FRAME_RUNNABLE, a mark. */
#define PROFILE_RUNNABLE "[waiting for a CPU]"

/* Name of a FRAME_SUBJECT, a mark: a sampled thread ran or waited in native code. */
#define PROFILE_OUTSIDE "[outside of managed code]"

/* Name of a FRAME_LABEL: waits with an unknown stack, and samples on a CPU in wall.folded. */
#define PROFILE_NO_STACK "[no stack]"

/*
 * Appends a sample. Keeps the order of calls; times need not rise. Adds it to its group. 0,
 * -ENOMEM, -E2BIG, or -errno of the temporary file.
 */
int profile_sample(struct profile *p, const struct profile_sample *sample);

/*
 * Return the parts by id; valid until the next call that adds a part. Ids run from 0 (stacks: from
 * 1) to the count - 1.
 */
const struct profile_event *profile_event_of(const struct profile *p, uint32_t event);
const struct profile_thread *profile_thread_of(const struct profile *p, uint32_t thread);
const struct profile_frame *profile_frame_of(const struct profile *p, uint32_t frame);
uint32_t profile_stack_parent(const struct profile *p, uint32_t stack);
/* stack: not PROFILE_STACK_EMPTY. */
uint32_t profile_stack_frame(const struct profile *p, uint32_t stack);
uint32_t profile_nevents(const struct profile *p);
uint32_t profile_nthreads(const struct profile *p);
uint32_t profile_nframes(const struct profile *p);
uint32_t profile_nstacks(const struct profile *p); /* includes the empty stack */
uint64_t profile_nsamples(const struct profile *p);

/* Times of the earliest sample, except 0, and of the latest one; 0: no samples. */
struct profile_span {
	uint64_t first_ns, last_ns;
};

struct profile_span profile_span(const struct profile *p);

/*
 * Calls fn for all samples in the order in which they were added. Stops when fn returns non-zero,
 * and returns that.
 */
int profile_each_sample(struct profile *p,
			int (*fn)(void *ctx, const struct profile_sample *sample), void *ctx);

/*
 * Returns all groups in the order of their first samples; valid until the next profile_sample.
 * Frees the memory that only new samples need.
 */
const struct profile_group *profile_groups(struct profile *p, size_t *ret_n);

#endif
