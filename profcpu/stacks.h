/*
 * Whole stacks of the samples that are read: where they carry registers and a copy of their stack they are unwound, as perf script does;
 * where their recorder did it before, it says in samples.idx how far they can be trusted. Both are counted.
 */
#ifndef PROFCPU_STACKS_H
#define PROFCPU_STACKS_H

#include "recording/perfdata.h"
#include "recording/samples_idx.h"
#include "symbols/symbolizer.h"
#include "unwind/unwinder.h"

struct stacks;

struct stacks_options {
	const struct samples_idx *recorded; /* borrowed; NULL: the recorder did not unwind */
	int symbols_fd; /* symbols/ of the recording, whose kept stacks are taken instead of unwinding again; -1: none. Borrowed. */
	bool keep; /* stacks_keep will be called */
	struct opener *opener; /* borrowed; as struct unwinder_options */
	bool offline; /* no file of this machine is looked into, so that nothing can be unwound but the sampled frame */
	bool recorded_elsewhere;
	bool other_arch; /* nothing can be unwound: registers are not those of arch.h */
	bool grades; /* frames are to say how they were found */
	size_t max_stack; /* 0: as many as may be */
};

/* 0 or -ENOMEM. */
int stacks_new(const struct stacks_options *options, struct stacks **ret_stacks);
void stacks_free(struct stacks *s);

/* What is to be known before the samples: the events, as they become known; build ids; all records that are no samples. Where no event's
 * samples can be unwound nothing is done. 0, -ENOMEM. */
int stacks_events(struct stacks *s, const struct perfdata_event *events, size_t n);
int stacks_build_ids(struct stacks *s, const struct perfdata_build_id_entry *ids, size_t n);
int stacks_apply(struct stacks *s, const struct perfdata_record *record);

/* Gives a sample its whole callchain, which is valid until the next call, and says what is known of it. 0 or -ENOMEM. */
int stacks_sample(struct stacks *s, const struct perfdata_event *event, struct perfdata_record *record,
		  struct symbolizer_stack *ret_stack);

/* Keeps what was unwound, if anything was, in a recording's symbols/. 0 or -errno. */
int stacks_keep(struct stacks *s, int symbols_fd);

/* Of samples with callchains: the grades of their user parts, why those end that are truncated, and how their frames were found. */
struct stacks_summary {
	bool known; /* stacks were unwound, by us or by the recorder */
	uint64_t grades[UNWIND_GRADES], ends[WALK_ENDS];
	uint64_t found, spliced, guessed; /* user frames */
};
struct stacks_summary stacks_summary(const struct stacks *s);

#endif
