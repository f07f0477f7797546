/* The wall clock of a trace's events. The head of a trace has its time to the millisecond. */
#ifndef DOTNET_EVENTPIPE_EVENT_CLOCK_H
#define DOTNET_EVENTPIPE_EVENT_CLOCK_H

#include "dotnet/eventpipe/nettrace.h"

#include <stdbool.h>

/* A zeroed struct knows no time. */
struct event_clock {
	uint64_t sync_ns;     /* CLOCK_MONOTONIC at sync_utc_ns */
	uint64_t sync_utc_ns; /* since 1970 */
	bool has_utc;         /* the head of the trace has a valid time */
};

struct event_clock event_clock_of(const struct nettrace_trace *trace);

/* Turns the time of an event into that since 1970. Returns whether it is known and not absurd. */
bool event_clock_utc(const struct event_clock *c, uint64_t time_ns, uint64_t *ret_utc_ns);

#endif
