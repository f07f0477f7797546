/*
 * Folded stacks from a profile: lines "comm;caller;callee 12", sorted by the bytes of their stack.
 *
 * In perf's form they are, byte for byte, what `perf script | stackcollapse-perf.pl` prints: each thread, event and frame is
 * put as perf script prints it and taken apart as that script does (profile/script_line.h, script_names.h). Of the event
 * follows what counts: only the one that is folded, with its period; events with fields of their own always, 1 a sample.
 * A process's name has '_' for spaces, and "-PID" or "-PID/TID" at its end if asked for. Samples whose header the script could
 * not read (a name that is empty, or begins with white space or '#') are left out, as it does, and counted.
 *
 * Differences that are left: where all events were sampled without stacks the script prints nothing, we fold the one frame
 * that there is, and so for such an event that was asked for; counts stop at 2^64 - 1, where the script goes over to
 * floating point; of names of threads with newlines the part behind the last is taken; where perf prints a thread
 * without a pid (-1) the script takes the line up to the time for the name, we say its name; so with names of one byte
 * and tids of five digits or more (perf 6.5 and later: of seven), which leave no white space but the one behind the name.
 */
#ifndef FLAMEGRAPH_COLLAPSE_H
#define FLAMEGRAPH_COLLAPSE_H

#include "base/outbuf.h"
#include "profile/profile.h"
#include "profile/script_line.h"

#include <stdbool.h>

enum collapse_names {
	COLLAPSE_PERF, /* byte for byte what `perf script | stackcollapse-perf.pl` prints */
	COLLAPSE_FULL, /* the names of DESIGN.md */
};

/*
 * The options of stackcollapse-perf.pl; all zero is its default. In the full form frames have ':' for ';' and '?' for a
 * newline, the annotations go by the frame's kind, srcline appends ":file.c:12", addrs " <address>" inside of the brackets
 * of frames without a name.
 */
struct collapse_options {
	enum collapse_names names;
	bool include_pid, include_tid; /* --pid, --tid: comm-PID, comm-PID/TID */
	bool annotate_kernel, annotate_jit; /* --kernel _[k], --jit _[j]; --all is both */
	bool annotate_inlined; /* full form only: _[i] */
	bool include_addrs; /* --addrs */
	bool srcline; /* --srcline */
	/* --inline, perf's form only: appends the names that stand for a frame, root first, joined by ';', instead of the usual
	 * ones. 0; -ENOENT: the usual ones; other errors end the folding. NULL: not asked for. */
	int (*inline_names)(void *ctx, const struct script_frame *frame, struct outbuf *out);
	void *inline_ctx;
	const char *event_filter; /* --event-filter; NULL or "": the default */
	const char *default_event; /* what is folded by default; NULL: the event of the first sample that has one, but off_cpu */
	bool show_idle; /* waits that are idle have their stack, and not IDLE_NAME (profile/idle.h) */
	const struct profile_group *groups; /* borrowed: these, as if the profile's samples made them; NULL: they do */
	size_t ngroups;
	uint64_t divisor; /* of the weights, rounded; what is nothing then has no line. 0: 1 */
};

#define COLLAPSE_OTHERS 16

/* What was chosen and left out. */
struct collapse_stats {
	const char *event; /* the name of the event folded, of the profile's texts or the options'; NULL: there is none */
	const char *other_event; /* one that was not folded; NULL: none */
	const char *others[COLLAPSE_OTHERS]; /* all that have samples and were not folded, up to so many, in the order of their first sample */
	size_t nothers;
	uint64_t samples, weight; /* in the lines */
	uint64_t filtered_samples; /* of other events */
	uint64_t nameless_samples; /* left out because of their thread's name */
};

/* Writes the lines. 0, -ENOMEM, or the first write error. */
int collapse_write(struct profile *profile, const struct collapse_options *options, struct outbuf *out,
		   struct collapse_stats *ret_stats);

#endif
