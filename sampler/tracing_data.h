/* Formats of tracepoints, for the TRACING_DATA feature that perf needs in perf.data. */
#ifndef SAMPLER_TRACING_DATA_H
#define SAMPLER_TRACING_DATA_H

#include "sampler/event.h"

#include <stddef.h>

#define TRACING_FILE_MAX ((size_t)4 << 20) /* one file of tracefs */

/*
 * The content for the tracepoints among the events, allocated, or NULL and 0 where there is none.
 * Layout: Linux tools/perf/util/trace-event-info.c, version 0.5. 0 or -errno.
 */
int tracing_data_read(const struct sampler_roots *roots, const struct sampler_event *events,
		      size_t n, char **ret_data, size_t *ret_len);

/* The text of a tracepoint's file `format`: "sched", "sched_waking". Allocated. 0 or -errno. */
int tracing_data_format(const struct sampler_roots *roots, const char *system, const char *name,
			char **ret_text);

#endif
