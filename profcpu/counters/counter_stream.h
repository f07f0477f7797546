/*
 * Values of counters from the events of a session. Follows the rules of dotnet-counters: if an
 * EventSource and a meter have the same name, the meter counts. EventCounters wait up to 1 s until
 * that is known.
 */
#ifndef PROFCPU_COUNTERS_COUNTER_STREAM_H
#define PROFCPU_COUNTERS_COUNTER_STREAM_H

#include "profcpu/counters/counter_event.h"
#include "profcpu/counters/counter_list.h"
#include "profcpu/counters/counter_value.h"

/* Instruments whose tags are known. Values of further ones have no tags of theirs. */
#define COUNTER_INSTRUMENTS_MAX 65536
#define COUNTER_INSTRUMENTS_TEXT_MAX ((size_t)32 << 20) /* bytes of their texts */
#define COUNTER_WAITING_MAX 16384 /* EventCounters that wait; further ones do not wait */

struct counter_stream_options {
	struct counter_list *list;    /* borrowed */
	const char *session, *client; /* ids of our session of meters */
	uint64_t interval_ms;
	bool totals; /* counters of meters have their total, not the change in the interval */
};

/* The functions are called in counter_stream_take and counter_stream_tick. */
struct counter_stream_sink {
	void (*value)(void *ctx, const struct counter_value *value);
	/* An observable instrument has no value any longer. Only provider, name and tags are set.
	 */
	void (*ended)(void *ctx, const struct counter_value *value);
	/* COUNTER_EVENT_SERIES_LIMIT and those behind it, if they concern our session. */
	void (*problem)(void *ctx, const struct counter_event *event);
	void *ctx;
};

struct counter_stream_stats {
	uint64_t values;
	uint64_t damaged; /* events that could not be read */
	uint64_t
		other_interval_ms; /* another tool has the runtime send EventCounters at this one */
};

struct counter_stream;

/* 0; -ENOMEM. */
int counter_stream_new(const struct counter_stream_options *options,
		       const struct counter_stream_sink *sink, struct counter_stream **ret_stream);
void counter_stream_free(struct counter_stream *s);

/* Takes an event; now_ns: CLOCK_MONOTONIC. 0; -ENOMEM. */
int counter_stream_take(struct counter_stream *s, const struct nettrace_event *event,
			uint32_t pointer_bytes, uint64_t now_ns);

/* Passes on the values that have waited long enough; UINT64_MAX: all. */
void counter_stream_tick(struct counter_stream *s, uint64_t now_ns);

struct counter_stream_stats counter_stream_stats(const struct counter_stream *s);

#endif
