/* Folded stacks from a profile: "comm;caller;callee 12" lines. */
#ifndef FLAMEGRAPH_COLLAPSE_H
#define FLAMEGRAPH_COLLAPSE_H

#include "base/outbuf.h"
#include "profile/profile.h"

#include <stdbool.h>

enum collapse_names {
	COLLAPSE_PERF, /* byte for byte what `perf script | stackcollapse-perf.pl` prints */
	COLLAPSE_FULL, /* the names of DESIGN.md */
};

/* The options of stackcollapse-perf.pl; all zero is its default. */
struct collapse_options {
	enum collapse_names names;
	bool include_pid, include_tid; /* --pid, --tid: comm-PID, comm-PID/TID */
	bool annotate_kernel, annotate_jit; /* --kernel _[k], --jit _[j]; --all is both */
	bool include_addrs; /* --addrs */
	bool show_inline; /* --inline */
	bool show_context; /* --context */
	bool srcline; /* --srcline */
	const char *event_filter; /* --event-filter; NULL: the first event seen */
};

/* What was chosen and left out. */
struct collapse_stats {
	uint32_t event; /* the event folded; PROFILE_NONE: several or none */
	uint64_t samples, weight, filtered_samples;
	bool several_events; /* there are others than the one folded: to be said */
};

/* Writes the lines sorted by bytes. 0, -ENOMEM, or the first write error. */
int collapse_write(struct profile *profile, const struct collapse_options *options, struct outbuf *out,
		   struct collapse_stats *ret_stats);

#endif
