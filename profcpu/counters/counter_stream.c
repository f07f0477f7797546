#include "profcpu/counters/counter_stream.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_WAIT_NS NS_PER_S

/* Facts that only the first event of an instrument has. */
struct stream_instrument {
	const char *provider, *name, *unit, *meter_tags, *instrument_tags;
};

/* An EventCounter that waits. Its texts are in one allocation, text. */
struct stream_waiting {
	struct counter_group *group;
	struct counter_value value;
	char *text;
};

struct counter_stream {
	struct counter_stream_options options;
	struct counter_stream_sink sink;
	struct counter_stream_stats stats;
	struct counter_event event;
	VEC(struct stream_instrument) instruments;
	struct hashmap by_id, by_name; /* hash of the name, or id, to the index of an instrument */
	struct arena text;
	VEC(struct stream_waiting) waiting;
	bool all_begun;
};

int counter_stream_new(const struct counter_stream_options *options,
		       const struct counter_stream_sink *sink, struct counter_stream **ret_stream)
{
	struct counter_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->sink = *sink;
	*ret_stream = s;
	return 0;
}

void counter_stream_free(struct counter_stream *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->waiting.len; i++)
		free(s->waiting.v[i].text);
	vec_free(&s->waiting);
	vec_free(&s->instruments);
	hashmap_free(&s->by_id);
	hashmap_free(&s->by_name);
	arena_free(&s->text);
	counter_event_free(&s->event);
	free(s);
}

struct counter_stream_stats counter_stream_stats(const struct counter_stream *s)
{
	return s->stats;
}

static uint64_t stream_name_key(const char *provider, const char *name)
{
	return hash_mix(hash_bytes(provider, strlen(provider)), hash_bytes(name, strlen(name)));
}

static const struct stream_instrument *stream_instrument(const struct counter_stream *s,
							 const struct counter_event *e)
{
	const char *provider = e->text[COUNTER_PROVIDER], *name = e->text[COUNTER_NAME];
	const uint32_t *index = e->has_id ? hashmap_get(&s->by_id, e->id) : NULL;

	if (!index)
		index = hashmap_get(&s->by_name, stream_name_key(provider, name));
	if (!index)
		return NULL;
	const struct stream_instrument *i = &s->instruments.v[*index];

	return !strcmp(i->provider, provider) && !strcmp(i->name, name) ? i : NULL;
}

static const char *stream_copy(struct counter_stream *s, const char *text)
{
	return arena_strndup(&s->text, text, strlen(text));
}

static int stream_begin_instrument(struct counter_stream *s, const struct counter_event *e)
{
	const char *provider = e->text[COUNTER_PROVIDER], *name = e->text[COUNTER_NAME];

	if ((e->has_id && hashmap_get(&s->by_id, e->id)) ||
	    (!e->has_id && stream_instrument(s, e)) ||
	    s->instruments.len >= COUNTER_INSTRUMENTS_MAX ||
	    s->text.total_bytes >= COUNTER_INSTRUMENTS_TEXT_MAX)
		return 0;
	struct stream_instrument i = {
		.provider = stream_copy(s, provider),
		.name = stream_copy(s, name),
		.unit = stream_copy(s, e->text[COUNTER_UNIT]),
		.meter_tags = stream_copy(s, e->text[COUNTER_METER_TAGS]),
		.instrument_tags = stream_copy(s, e->text[COUNTER_INSTRUMENT_TAGS]),
	};
	uint32_t index = (uint32_t)s->instruments.len;

	if (!i.provider || !i.name || !i.unit || !i.meter_tags || !i.instrument_tags ||
	    vec_push(&s->instruments, i) ||
	    hashmap_put(&s->by_name, stream_name_key(provider, name), index) ||
	    (e->has_id && hashmap_put(&s->by_id, e->id, index)))
		return -ENOMEM;
	return 0;
}

static void stream_pass_on(struct counter_stream *s, struct counter_group *g,
			   const struct counter_value *v)
{
	s->stats.values++;
	counter_group_mark(g, v->name);
	s->sink.value(s->sink.ctx, v);
}

/* Whether it is known which of the EventSource and the meter counts. */
static bool stream_decided(const struct counter_stream *s, const struct counter_group *g,
			   uint64_t now_ns)
{
	return g->events_only || g->has_meter || s->all_begun || now_ns == UINT64_MAX ||
	       now_ns - g->first_ns >= STREAM_WAIT_NS;
}

void counter_stream_tick(struct counter_stream *s, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->waiting.len; i++) {
		struct stream_waiting *w = &s->waiting.v[i];

		if (!stream_decided(s, w->group, now_ns)) {
			s->waiting.v[kept++] = *w;
			continue;
		}
		if (!w->group->has_meter)
			stream_pass_on(s, w->group, &w->value);
		free(w->text);
	}
	s->waiting.len = kept;
}

static const char *stream_append(char **to, const char *text)
{
	const char *copy = *to;

	*to = stpcpy(*to, text) + 1;
	return copy;
}

static int stream_wait(struct counter_stream *s, struct counter_group *g,
		       const struct counter_value *v)
{
	size_t bytes = strlen(v->provider) + strlen(v->name) + strlen(v->title) + strlen(v->unit) +
		       strlen(v->tags) + 5;
	struct stream_waiting w = {.group = g, .value = *v, .text = malloc(bytes)};
	char *to = w.text;

	if (!w.text)
		return -ENOMEM;
	w.value.provider = stream_append(&to, v->provider);
	w.value.name = stream_append(&to, v->name);
	w.value.title = stream_append(&to, v->title);
	w.value.unit = stream_append(&to, v->unit);
	w.value.tags = stream_append(&to, v->tags);
	if (vec_push(&s->waiting, w)) {
		free(w.text);
		return -ENOMEM;
	}
	return 0;
}

static struct counter_value stream_value(const struct counter_event *e, uint64_t time_ns)
{
	return (struct counter_value){.time_ns = time_ns,
				      .provider = e->text[COUNTER_PROVIDER],
				      .name = e->text[COUNTER_NAME],
				      .title = e->text[COUNTER_DISPLAY],
				      .unit = e->text[COUNTER_UNIT],
				      .tags = e->text[COUNTER_TAGS],
				      .meter_tags = "",
				      .instrument_tags = "",
				      .value = e->value};
}

static int stream_take_counter(struct counter_stream *s, uint64_t time_ns, uint64_t now_ns)
{
	const struct counter_event *e = &s->event;
	struct counter_value v = stream_value(e, time_ns);
	struct counter_group *g = counter_list_find(s->options.list, v.provider, v.name);

	if (!g || !e->has_value || (g->has_meter && !g->events_only))
		return 0;
	if (e->interval_ms != s->options.interval_ms)
		s->stats.other_interval_ms = e->interval_ms;
	v.counts = v.is_rate = e->type == COUNTER_EVENT_SUM;
	v.interval_ms = e->interval_ms;
	g->first_ns = g->first_ns ? g->first_ns : now_ns;
	if (!stream_decided(s, g, now_ns) && s->waiting.len < COUNTER_WAITING_MAX)
		return stream_wait(s, g, &v);
	counter_stream_tick(s, now_ns); /* those before it come first */
	stream_pass_on(s, g, &v);
	return 0;
}

static void stream_take_histogram(struct counter_stream *s, struct counter_group *g,
				  struct counter_value *v)
{
	const char *list = s->event.text[COUNTER_QUANTILES];

	v->has_quantile = true;
	while (counter_event_quantile(&list, &v->quantile, &v->value))
		stream_pass_on(s, g, v);
}

static void stream_take_instrument(struct counter_stream *s, uint64_t time_ns)
{
	const struct counter_event *e = &s->event;
	const struct stream_instrument *i = stream_instrument(s, e);
	struct counter_value v = stream_value(e, time_ns);
	struct counter_group *g = counter_list_find(s->options.list, v.provider, v.name);

	if (!g || g->events_only)
		return;
	g->has_meter = true;
	v.is_meter = true;
	if (i) {
		v.unit = i->unit;
		v.meter_tags = i->meter_tags;
		v.instrument_tags = i->instrument_tags;
	}
	if (e->type == COUNTER_EVENT_HISTOGRAM) {
		stream_take_histogram(s, g, &v);
		return;
	}
	bool has = e->has_value;

	if (e->type == COUNTER_EVENT_RATE) {
		v.counts = true;
		/* Before .NET 8 there are no totals. */
		v.is_rate = !s->options.totals || !has;
		v.interval_ms = s->options.interval_ms;
		has = v.is_rate ? e->has_rate : has;
		v.value = v.is_rate ? e->rate : e->value;
	}
	if (has)
		stream_pass_on(s, g, &v);
	else
		s->sink.ended(s->sink.ctx, &v);
}

/* Whether an event of a session of meters concerns ours. */
static bool stream_is_ours(const struct counter_stream *s)
{
	const char *id = s->event.text[COUNTER_SESSION];

	switch (s->event.type) {
	case COUNTER_EVENT_OTHER_LIMITS:
		return !strcmp(id, s->options.client);
	case COUNTER_EVENT_OTHER_SESSION: /* the one that runs */
		return strcmp(id, s->options.session) != 0;
	default:
		return !strcmp(id, s->options.session);
	}
}

int counter_stream_take(struct counter_stream *s, const struct nettrace_event *event,
			uint32_t pointer_bytes, uint64_t now_ns)
{
	struct counter_event *e = &s->event;
	int r = counter_event_parse(e, event, pointer_bytes);

	if (r == -EBADMSG) {
		s->stats.damaged++;
		return 0;
	}
	if (r || e->type == COUNTER_EVENT_OTHER)
		return r;
	if (e->type == COUNTER_EVENT_MEAN || e->type == COUNTER_EVENT_SUM)
		return stream_take_counter(s, event->time_ns, now_ns);
	if (!stream_is_ours(s))
		return 0;
	struct counter_group *g;

	switch (e->type) {
	case COUNTER_EVENT_BEGIN:
		g = counter_list_find(s->options.list, e->text[COUNTER_PROVIDER],
				      e->text[COUNTER_NAME]);
		if (!g || g->events_only)
			return 0;
		g->has_meter = true;
		return stream_begin_instrument(s, e);
	case COUNTER_EVENT_RATE:
	case COUNTER_EVENT_UP_DOWN:
	case COUNTER_EVENT_GAUGE:
	case COUNTER_EVENT_HISTOGRAM:
		stream_take_instrument(s, event->time_ns);
		return 0;
	case COUNTER_EVENT_ALL_BEGUN:
		s->all_begun = true;
		return 0;
	default:
		s->sink.problem(s->sink.ctx, e);
		return 0;
	}
}
