/*
 * Options of folding: those of stackcollapse-perf.pl and a few more. frame_names.h and
 * collapse_walk.h need them without the rest of collapse.h.
 */
#ifndef FLAMEGRAPH_COLLAPSE_OPTIONS_H
#define FLAMEGRAPH_COLLAPSE_OPTIONS_H

#include "base/outbuf.h"
#include "profile/idle.h"
#include "profile/profile.h"
#include "profile/script_line.h"

#include <stdbool.h>

enum collapse_names {
	COLLAPSE_PERF, /* exactly as `perf script | stackcollapse-perf.pl` prints them */
	COLLAPSE_FULL, /* demangled, with parameters and namespaces; the form of pictures */
};

/*
 * All zero is the default of stackcollapse-perf.pl.
 *
 * In the full form, names have ':' for ';' and '?' for a newline, and '_' for a blank before a
 * number at their end. Annotations depend on the frame's kind. srcline appends ":file.c:12".
 * include_addrs adds " <address>" to frames without a name, inside their brackets.
 */
struct collapse_options {
	enum collapse_names names;
	bool include_pid, include_tid;      /* --pid, --tid: comm-PID, comm-PID/TID */
	bool annotate_kernel, annotate_jit; /* --kernel _[k], --jit _[j]; --all is both */
	bool annotate_inlined;              /* full form only: _[i] */
	bool include_addrs;                 /* --addrs */
	bool srcline;                       /* --srcline */
	/*
	 * --inline, perf's form only: appends the names of a frame and its inlined functions, root
	 * first, joined by ';'. Returns 0; -ENOENT: use the usual names; other errors end the
	 * folding. NULL: no --inline.
	 */
	int (*inline_names)(void *ctx, const struct script_frame *frame, struct outbuf *out);
	void *inline_ctx;
	const char *event_filter; /* --event-filter; NULL or "": the default */
	/* The default event; NULL: the event of the first sample that has one, off-CPU excluded. */
	const char *default_event;
	struct idle *idle; /* of the profile; borrowed; NULL: idle waits keep their stack */
	/* Borrowed; fold these groups. NULL: those of the profile. */
	const struct profile_group *groups;
	size_t ngroups;
	/* Divides the weights, with rounding; a line with weight 0 is left out. 0: 1. */
	uint64_t divisor;
};

#endif
