#include "profcpu/counters/counter_session.h"

#include "profcpu/counters/counter_event.h"
#include "profcpu/counters/counter_value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define SESSION_SHARED_ID "SHARED"
/* EventCounters have level 0, so that no other event of an EventSource is sent. */
#define SESSION_COUNTERS_LEVEL 1
#define SESSION_METRICS_LEVEL 4
#define SESSION_METRICS_KEYWORDS 0x2 /* TimeSeriesValues */

/* Makes an id that no other tool has, in the form of a GUID. */
static int session_new_id(char *id)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		return -errno;
	snprintf(id, COUNTER_ID_BYTES,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		 b[15]);
	return 0;
}

/* Puts "METER" or "METER\INSTRUMENT,METER\INSTRUMENT". */
static void session_put_group(struct outbuf *out, const struct counter_group *g)
{
	if (!g->names.len)
		outbuf_str(out, g->provider);
	for (size_t k = 0; k < g->names.len; k++)
		outbuf_printf(out, "%s%s\\%s", k ? "," : "", g->provider, g->names.v[k].name);
}

/* Returns whether there are meters. */
static bool session_put_metrics(struct outbuf *out, const struct counter_list *list)
{
	bool any = false;

	for (size_t i = 0; i < list->v.len; i++) {
		const struct counter_group *g = &list->v.v[i];

		if (g->events_only)
			continue;
		outbuf_str(out, any ? "," : "");
		session_put_group(out, g);
		any = true;
	}
	return any;
}

static int session_add_metrics(struct counter_session *s, const struct counter_list *list,
			       const struct counter_session_limits *limits)
{
	struct outbuf *out = &s->metrics, names = outbuf_to(-1);

	if (!session_put_metrics(&names, list)) {
		outbuf_close(&names);
		return 0;
	}
	/* A value with these would end at them. */
	bool quoted = names.len &&
		      (memchr(names.data, ';', names.len) || memchr(names.data, '=', names.len));

	outbuf_printf(out, "SessionId=%s;Metrics=%s", s->id, quoted ? "\"" : "");
	outbuf_put(out, names.data, names.len);
	outbuf_printf(out, "%s;RefreshInterval=", quoted ? "\"" : "");
	counter_put_number(out, (double)limits->interval_ms / 1000);
	outbuf_printf(out, ";MaxTimeSeries=%llu;MaxHistograms=%llu;ClientId=%s",
		      (unsigned long long)limits->max_series,
		      (unsigned long long)limits->max_histograms, s->client);
	outbuf_char(out, 0);
	int r = names.error ? names.error : out->error;

	outbuf_close(&names);
	struct session_provider p = {.name = COUNTER_METRICS_PROVIDER,
				     .arguments = out->data,
				     .keywords = SESSION_METRICS_KEYWORDS,
				     .level = SESSION_METRICS_LEVEL};

	return r ? r : vec_push(&s->providers, p);
}

int counter_session_make(struct counter_session *s, const struct counter_list *list,
			 const struct counter_session_limits *limits)
{
	int r;

	*s = (struct counter_session){.metrics = outbuf_to(-1)};
	r = session_new_id(s->client);
	if (!r && limits->shared)
		snprintf(s->id, sizeof(s->id), SESSION_SHARED_ID);
	else if (!r)
		r = session_new_id(s->id);
	snprintf(s->interval, sizeof(s->interval), "EventCounterIntervalSec=%.10g",
		 (double)limits->interval_ms / 1000);
	for (size_t i = 0; i < list->v.len && !r; i++) {
		struct session_provider p = {.name = list->v.v[i].provider,
					     .arguments = s->interval,
					     .level = SESSION_COUNTERS_LEVEL};

		r = vec_push(&s->providers, p);
	}
	if (!r)
		r = session_add_metrics(s, list, limits);
	return r;
}

void counter_session_free(struct counter_session *s)
{
	outbuf_close(&s->metrics);
	vec_free(&s->providers);
}
