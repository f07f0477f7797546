/* Options of a recording of runtime events: the runtime, its events, and when to end. */
#ifndef PROFCPU_TRACE_OPTIONS_H
#define PROFCPU_TRACE_OPTIONS_H

#include "dotnet/eventpipe/provider_list.h"
#include "profcpu/port/target.h"
#include "profcpu/trace/stop_event.h"

/* Whether the runtime lists its methods and modules at the end, which names the stacks. */
enum trace_rundown {
	TRACE_RUNDOWN_AUTO, /* names come from memory; if that fails, its list, if that cannot crash
			       it */
	TRACE_RUNDOWN_ON,
	TRACE_RUNDOWN_OFF,
};

/* The keywords that dotnet-trace uses. */
#define TRACE_RUNDOWN_KEYWORDS UINT64_C(0x80020139)

struct trace_options {
	struct port_options target;
	const struct session_provider *providers;
	size_t nproviders;
	enum trace_rundown rundown;
	uint64_t rundown_keywords; /* with TRACE_RUNDOWN_AUTO and TRACE_RUNDOWN_ON */
	uint32_t buffer_mb;
	bool waits;              /* threads wait for room in the runtime's buffer */
	uint64_t duration_ns;    /* 0: until a signal, the event or the end of the process */
	struct stop_event *stop; /* borrowed */
	const char *out; /* NULL: a name of the program and the time; "-": standard output */
};

#endif
