/*
 * Parser of the events that carry counters: EventCounters of an EventSource, and those of the
 * provider System.Diagnostics.Metrics. Sources: CounterPayload.cs and MetricsEventSource.cs of
 * dotnet/runtime.
 */
#ifndef PROFCPU_COUNTERS_COUNTER_EVENT_H
#define PROFCPU_COUNTERS_COUNTER_EVENT_H

#include "base/outbuf.h"
#include "dotnet/eventpipe/nettrace.h"

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_METRICS_PROVIDER "System.Diagnostics.Metrics"

enum counter_event_type {
	COUNTER_EVENT_OTHER, /* none of these */
	COUNTER_EVENT_MEAN,  /* an EventCounter or PollingCounter */
	COUNTER_EVENT_SUM,   /* an IncrementingEventCounter or IncrementingPollingCounter */
	COUNTER_EVENT_BEGIN, /* an instrument of a meter will report values */
	COUNTER_EVENT_RATE,  /* of a Counter or ObservableCounter */
	COUNTER_EVENT_UP_DOWN,
	COUNTER_EVENT_GAUGE,
	COUNTER_EVENT_HISTOGRAM,
	COUNTER_EVENT_ALL_BEGUN, /* all instruments that exist were reported */
	COUNTER_EVENT_SERIES_LIMIT,
	COUNTER_EVENT_HISTOGRAM_LIMIT,
	COUNTER_EVENT_ERROR,
	COUNTER_EVENT_CALLBACK_ERROR,
	COUNTER_EVENT_OTHER_SESSION, /* a session of another tool runs, so the new one does not */
	COUNTER_EVENT_OTHER_LIMITS,  /* a shared session runs with other limits */
};

enum counter_text {
	COUNTER_SESSION, /* the session, or with OTHER_LIMITS the client */
	COUNTER_PROVIDER,
	COUNTER_NAME,
	COUNTER_DISPLAY,
	COUNTER_UNIT,
	COUNTER_TAGS,
	COUNTER_METER_TAGS,
	COUNTER_INSTRUMENT_TAGS,
	COUNTER_RATE,
	COUNTER_VALUE,
	COUNTER_QUANTILES,
	COUNTER_KIND,
	COUNTER_SERIES,
	COUNTER_MESSAGE,
	COUNTER_MAX_HISTOGRAMS, /* of the other session */
	COUNTER_MAX_SERIES,
	COUNTER_INTERVAL,
	COUNTER_TEXTS,
};

/* A zeroed struct is fine for counter_event_parse. */
struct counter_event {
	enum counter_event_type type;
	const char *text[COUNTER_TEXTS]; /* UTF-8; "" if the event has none */
	bool has_rate, has_value;
	double rate, value;   /* rate: the change in the interval; value: the total or the value */
	uint64_t interval_ms; /* of an EventCounter; 0: unknown */
	bool has_id;
	uint32_t id; /* of the instrument, since .NET 9 */
	/* Memory of the texts. */
	struct outbuf buf;
	size_t at[COUNTER_TEXTS];
};

/*
 * Parses an event. Its texts are valid until the next call. 0; -EBADMSG: damaged; -ENOMEM.
 */
int counter_event_parse(struct counter_event *e, const struct nettrace_event *event,
			uint32_t pointer_bytes);

/*
 * Reads the next quantile of a histogram, as "0.5" and its value. *list begins as
 * text[COUNTER_QUANTILES]. Skips invalid ones. Returns whether there was one.
 */
bool counter_event_quantile(const char **list, double *ret_quantile, double *ret_value);

void counter_event_free(struct counter_event *e);

#endif
