/*
 * Folds a profile into lines "comm;caller;callee 12", sorted by the bytes of their stack.
 *
 * In perf's form, the lines equal those of `perf script | stackcollapse-perf.pl`, byte for byte.
 * Each thread, event and frame is written as perf script writes it, then split by that script's
 * rules (profile/script_line.h, script_names.h). The event decides what counts. Only the folded
 * event is counted, with its period; events with fields of their own always count, as 1 a sample.
 * Process names have '_' for spaces, and on request a "-PID" or "-PID/TID" suffix. Samples whose
 * header the script cannot read are left out and counted, as by the script. Their thread name is
 * empty, or begins with white space or '#'.
 *
 * These differences remain:
 * - If all events were sampled without stacks, the script prints nothing. We fold each sample's
 *   only frame. We also do so if the user requests such an event.
 * - Counts stop at 2^64 - 1; the script changes to floating point.
 * - If a thread's name has newlines, we take the part after the last one.
 * - For names of one byte with tids of five or more digits (perf 6.5 and later: seven), the script
 *   takes the line up to the time as the name, because only one space follows it. We take the name
 *   alone.
 */
#ifndef FLAMEGRAPH_COLLAPSE_H
#define FLAMEGRAPH_COLLAPSE_H

#include "flamegraph/collapse_options.h"

/* The chosen event, and the samples that were left out. */
struct collapse_stats {
	/* Name of the folded event, from the profile or the options; NULL: none. */
	const char *event;
	const char *other_event;   /* an event that was not folded; NULL: none */
	uint64_t samples, weight;  /* in the lines */
	uint64_t filtered_samples; /* of other events */
	uint64_t nameless_samples; /* left out because of their thread's name */
};

/* Writes the lines. Returns 0, -ENOMEM or the first write error. */
int collapse_write(struct profile *profile, const struct collapse_options *options,
		   struct outbuf *out, struct collapse_stats *ret_stats);

#endif
