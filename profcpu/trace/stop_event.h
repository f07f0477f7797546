/* The event that ends a trace: the options --stopping-event-... of dotnet-trace. */
#ifndef PROFCPU_TRACE_STOP_EVENT_H
#define PROFCPU_TRACE_STOP_EVENT_H

#include "base/vec.h"
#include "dotnet/eventpipe/nettrace.h"

#include <stdbool.h>

/* A value that the event must have. */
struct stop_field {
	char *name, *value; /* in text */
};

/* A zeroed struct is no event. */
struct stop_event {
	const char *provider; /* NULL: none */
	const char *event;    /* its name or number; NULL: any */
	VEC(struct stop_field) fields;
	char *text;         /* owned; holds the fields */
	bool field_missing; /* an event lacked one of the fields, so it can never match */
};

/*
 * Reads the values: "FIELD:VALUE,FIELD:VALUE". 0; -EINVAL: a part has no colon, or no field;
 * -ENOMEM.
 */
int stop_event_fields(struct stop_event *s, const char *text);

void stop_event_free(struct stop_event *s);

/*
 * Whether this event ends the trace. Names of events are those that profcpu prints, or those of
 * TraceEvent, as "GC/Start" for "GCStart"; upper and lower case are one.
 */
bool stop_event_matches(struct stop_event *s, const struct nettrace_event *event,
			uint32_t pointer_bytes);

#endif
