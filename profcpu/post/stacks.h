/*
 * Whole stacks for the samples of perf.data. Samples with registers and a copy of their stack are
 * unwound, as perf script does. For stacks that the recorder unwound, samples.idx gives the grade.
 * Counts the grades of both.
 */
#ifndef PROFCPU_POST_STACKS_H
#define PROFCPU_POST_STACKS_H

#include "recording/perfdata.h"
#include "recording/samples_idx.h"
#include "symbols/symbolizer.h"
#include "unwind/unwinder.h"

struct stacks;

struct stacks_options {
	/* Grades of the recorder's stacks. Borrowed; NULL: unknown, or it did not unwind. */
	const struct samples_idx *recorded;
	bool at_call_sites; /* the recorder unwound, so addresses of callers are in their calls */
	/*
	 * symbols/ of the recording. Stacks kept there are not unwound again. -1: none. Borrowed.
	 */
	int symbols_fd;
	bool keep;                     /* the caller will call post_stacks_keep */
	struct symbolizer *symbolizer; /* names the same samples; borrowed; NULL: nothing does */
	struct opener *opener;         /* for struct unwinder_options; borrowed */
	/* Read no file of this machine. Then only the sampled frame is known. */
	bool offline;
	bool recorded_elsewhere; /* on another machine */
	bool grades;             /* frames carry how they were found */
	size_t max_stack;        /* frames of a stack; 0: no limit */
};

/* 0 or -ENOMEM. */
int post_stacks_new(const struct stacks_options *options, struct stacks **ret_stacks);
void post_stacks_free(struct stacks *s);

/* Call it before the first sample of these events. Returns 0 or -ENOMEM. */
int post_stacks_events(struct stacks *s, const struct perfdata_event *events, size_t n);
/* arch: of the recording, as uname(2) names it; borrowed. Until it is known, it is ours. */
void post_stacks_arch(struct stacks *s, const char *arch);

/*
 * Gives a sample its whole callchain, valid until the next call, and its grade in *ret_stack. 0 or
 * -ENOMEM.
 */
int post_stacks_sample(struct stacks *s, const struct perfdata_event *event,
		       struct perfdata_record *record, struct symbolizer_stack *ret_stack);

/*
 * Writes unwound stacks, if any, to symbols/ of a recording. *ret_kept: the file now has the stacks
 * of all copies. 0 or -errno; -E2BIG: over a limit.
 */
int post_stacks_keep(struct stacks *s, int symbols_fd, bool *ret_kept);

/*
 * Counts of samples with callchains: grades and ends of their user parts, and their user frames by
 * how they were found.
 */
struct post_stacks_summary {
	bool known; /* stacks were unwound, now or by the recorder */
	uint64_t grades[UNWIND_GRADES];
	uint64_t ends[WALK_ENDS];         /* why truncated stacks end */
	uint64_t found, spliced, guessed; /* user frames */
	struct recording_limits limits;   /* of unwinding now, and LIMIT_MAX_STACK */
	uint64_t by_libdw;                /* samples whose registers only libdw can follow */
};
struct post_stacks_summary post_stacks_summary(const struct stacks *s);

#endif
