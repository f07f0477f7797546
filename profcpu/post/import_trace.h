/*
 * Makes a profile of the events of a trace (nettrace): samples of the runtime's own sampler, or any
 * event that has stacks. Methods have the names that the runtime lists in the trace, at its end or
 * when it compiles them.
 */
#ifndef PROFCPU_POST_IMPORT_TRACE_H
#define PROFCPU_POST_IMPORT_TRACE_H

#include "base/error.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The event of the sampler's samples. */
#define IMPORT_TRACE_SAMPLES "eventpipe-samples"

struct import_trace_options {
	/*
	 * "NAME" or "NAME:FIELD": only these events, each with the weight of that field. NULL: the
	 * sampler's samples.
	 */
	const char *event;
	bool raw_names, functions_only; /* as in struct post_options */
	size_t max_stack;               /* frames; 0: all */
};

struct import_trace_result {
	uint64_t samples, events;
	uint64_t unweighted;       /* events without the field, or with one that is no number */
	uint64_t frames, nameless; /* frames of all samples; those without a name */
	uint64_t lost, unknown;    /* as struct nettrace_stats */
	uint64_t cut_stacks;       /* because memory is short */
	uint64_t methods_left_out; /* over a limit on memory */
	uint64_t other_events;     /* with a stack, but not chosen */
	char others[256];          /* names of some of them; "": none */
	bool is_cut;               /* the end of the trace is missing */
};

/*
 * Reads from fd (a file or a pipe, borrowed) to its end.
 *
 * 0; -EBADMSG: not a trace, or damaged; -E2BIG: over a limit; -ENOMEM; -errno of read. *err has the
 * reason of the first two. The profile then has the events before the damage.
 *
 * Memory grows with the distinct stacks of threads, and with the methods that the trace lists.
 */
int post_import_trace(int fd, const struct import_trace_options *options, struct profile *profile,
		      struct import_trace_result *ret_result, struct parse_error *err);

#endif
