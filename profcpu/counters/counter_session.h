/* The providers of a session of counters, with the arguments that dotnet-counters gives them. */
#ifndef PROFCPU_COUNTERS_COUNTER_SESSION_H
#define PROFCPU_COUNTERS_COUNTER_SESSION_H

#include "base/outbuf.h"
#include "dotnet/eventpipe/session.h"
#include "profcpu/counters/counter_list.h"

#define COUNTER_ID_BYTES 40
#define COUNTER_INTERVAL_BYTES 64

struct counter_session {
	char id[COUNTER_ID_BYTES]; /* of the session of meters */
	char client[COUNTER_ID_BYTES];
	char interval[COUNTER_INTERVAL_BYTES]; /* "EventCounterIntervalSec=1" */
	struct outbuf metrics;                 /* arguments of the provider of meters */
	VEC(struct session_provider) providers;
};

struct counter_session_limits {
	uint64_t interval_ms, max_series, max_histograms;
	/* Tools share one session of meters. Runtimes before .NET 8 have only one at a time. */
	bool shared;
};

/* The list is borrowed while the providers are used. 0; -ENOMEM; -errno of getrandom. */
int counter_session_make(struct counter_session *s, const struct counter_list *list,
			 const struct counter_session_limits *limits);
void counter_session_free(struct counter_session *s);

#endif
