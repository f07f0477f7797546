/*
 * Shows the counters and meters of a runtime: finds the runtime or starts it, begins a session,
 * writes the values as they come, and ends well.
 */
#ifndef PROFCPU_COUNTERS_COUNTERS_H
#define PROFCPU_COUNTERS_COUNTERS_H

#include "profcpu/counters/counter_list.h"
#include "profcpu/counters/counter_output.h"
#include "profcpu/port/target.h"

struct counters_options {
	struct port_options target;
	const char *out;           /* NULL, "-": standard output */
	uint64_t duration_ns;      /* 0: until a signal or the end of the process */
	struct counter_list *list; /* borrowed; what was seen is noted in it */
	uint64_t interval_ms;
	uint64_t max_series, max_histograms;
	enum counter_format format;
};

/* Returns an exit status; messages tell what happened. */
int counters_run(const struct counters_options *options);

#endif
