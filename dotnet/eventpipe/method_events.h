/*
 * Writes the events with which a runtime lists methods and their modules at the end of a session,
 * for methods that were found in another way. Each reader that names stacks by a runtime's list
 * (dotnet/eventpipe/rundown.h, TraceEvent) names them by this one.
 */
#ifndef DOTNET_EVENTPIPE_METHOD_EVENTS_H
#define DOTNET_EVENTPIPE_METHOD_EVENTS_H

#include "dotnet/eventpipe/method_name.h"
#include "dotnet/eventpipe/nettrace_writer.h"

/* Numbers of kinds of events that method_events_write uses, from the first one on. */
#define METHOD_EVENTS_KINDS 4

struct method_event {
	uint64_t start;
	uint32_t bytes;
	uint32_t flags, token; /* METHOD_*; token 0: none, or unknown */
	uint64_t id;           /* the runtime's MethodDesc; 0: unknown */
	/*
	 * The runtime's Module, and its file ("": none). 0 and NULL: unknown; then a module of the
	 * same assembly is taken, or made up.
	 */
	uint64_t module;
	const char *path;
	const char *name; /* raw, perhaps with a tier */
	size_t len;
};

struct method_events_result {
	size_t written;  /* methods */
	size_t replaced; /* methods that were left out, because a later one is at their place */
};

/*
 * Writes one event for each method, those of the modules, and the end of the list.
 * Leaves out code whose name is not a method's, such as stubs. If methods overlap, only the last
 * one of them in the list is written: a runtime lists what is there at the end.
 *
 * trace: head of the stream. kind_id: the first of METHOD_EVENTS_KINDS ids that no kind of the
 * stream has. time_ns: CLOCK_MONOTONIC, not before any event of the stream.
 * 0; -ENOMEM. Errors of the output are in w->out.
 */
int method_events_write(struct nettrace_writer *w, const struct nettrace_trace *trace,
			uint32_t kind_id, uint64_t time_ns, const struct method_event *methods,
			size_t n, struct method_events_result *ret_result);

#endif
