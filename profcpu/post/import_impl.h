/*
 * Shared by the parts of import: records and samples (import.c), stacks of traces
 * (import_unnamed.c), samples for the comparison with them and for causes (import_compare.c).
 */
#ifndef PROFCPU_POST_IMPORT_IMPL_H
#define PROFCPU_POST_IMPORT_IMPL_H

#include "base/vec.h"
#include "profcpu/post/import.h"

/* An event of the file, and its event in the profile. */
struct import_event {
	bool known;
	bool has_samples;
	bool has_period;
	bool waker;          /* its samples are wakers; it is not an event of the profile */
	bool lbr_callchains; /* user callchains are in branch records: --call-graph lbr */
	uint32_t id;
};

/* A deferred sample: its kernel part, or that of an earlier sample, has no names yet. */
struct import_deferred {
	struct profile_sample sample;
	uint64_t file_off; /* of_trace: the number of the stack in its source */
	uint32_t source;   /* of_trace: index of sources */
	bool of_trace;     /* a stack of a trace */
	bool again;        /* has the thread and the stack of the one before, and no `begun` */
	struct symbolizer_sample begun;
};

struct import {
	struct perfdata *data;
	struct symbolizer *symbols;
	struct stacks *stacks;
	struct profile *profile;
	struct import_event *events;
	size_t nevents;
	size_t nevents_known; /* events handed to stacks */
	struct import_result *result;
	size_t build_ids; /* build ids handed on so far; in pipe mode they come late */
	uint64_t *lbr;    /* callchain made from branch records */
	size_t lbr_cap;
	bool kernel_seen;                     /* a sample had a kernel part */
	const struct offcpu_idx *offcpu;      /* borrowed; NULL: none */
	struct wakeups *wakeups;              /* NULL: without offcpu.idx */
	struct compare *compare;              /* borrowed; NULL: none */
	struct managed_profiles *managed;     /* borrowed; NULL: none */
	const struct unnamed_source *sources; /* borrowed */
	uint32_t nsources;
	uint32_t compared_event; /* the first one on CPUs; PROFILE_NONE: none yet */
	bool perf_threads;       /* as in struct import_options */
	int perf_tid_width;      /* of the column of tids in perf script's lines */
	bool group_begun;        /* for another counter, the last sample counts again */
	uint32_t thread, stack;  /* of the sample that ended last */
	bool defers;             /* samples are deferred, up to deferred_max */
	size_t deferred_max;
	VEC(struct import_deferred) deferred;
};

/* import.c: ends a sample that was begun, or defers that. 0 or -errno. */
int post_import_defer(struct import *in, struct import_deferred *deferred);

/* import_unnamed.c */
/* Names the stacks of traces before a time. 0 or -errno. */
int post_import_unnamed(struct import *in, uint64_t before_ns);
/* Ends one of them. */
int post_import_end_unnamed(struct import *in, const struct import_deferred *deferred);

/* import_compare.c */
/* Takes a sample for the comparison, before the wait is divided. 0, -ENOMEM. */
int post_import_compare(struct import *in, uint64_t file_off, const struct profile_sample *sample);
/* Takes a wait for its cause, before it is divided. 0, -ENOMEM. */
int post_import_cause(struct import *in, uint64_t file_off, const struct profile_sample *sample);
/* Takes the lives of threads, and finishes the comparison. Errors of compare_finish. */
int post_import_compare_finish(struct import *in);

#endif
