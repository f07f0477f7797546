/* Joins the events that begin and end a wait for a lock, a pause of the GC, or a compilation. */
#include "profcpu/managed/events_impl.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>

/* Suspensions that may be open at once. The runtime has one, and a second one waits for it. */
#define PAIR_PAUSES_MAX 16
#define PAIR_TYPE_BACKGROUND 1

/* A label of a collection: generation, reason and type. */
#define PAIR_BITS 8
#define PAIR_MAX ((UINT32_C(1) << PAIR_BITS) - 1)

/* A suspension of all threads that has not ended. */
struct pair_pause {
	struct managed_event event; /* of the thread that needed it */
	uint32_t suspender;         /* the thread that ends it, too */
};

struct pairing {
	struct managed_events *e;
	const struct managed_raw *raws;
	const struct managed_history *histories;
	struct hashmap begun; /* thread, and method or kind -> raw event that begins */
	struct pair_pause pauses[PAIR_PAUSES_MAX];
	size_t npauses;
	uint32_t background; /* the background collection that goes on; MANAGED_NO_LABEL: none */
	uint64_t background_count;
	/* Begins of the last blocking and background collections; 0: none, or it has ended. */
	uint64_t blocking_ns, background_ns;
	struct managed_event triggered; /* the last GCTriggered, until a pause takes its stack */
};

uint32_t managed_collection_label(struct managed_collection c)
{
	uint32_t generation = c.generation < PAIR_MAX ? c.generation : PAIR_MAX,
		 reason = c.reason < PAIR_MAX ? c.reason : PAIR_MAX,
		 type = c.type < PAIR_MAX ? c.type : PAIR_MAX;

	/* The generation is highest, so that the largest label of several is theirs. */
	return generation << 2 * PAIR_BITS | reason << PAIR_BITS | type;
}

struct managed_collection managed_collection_of(uint32_t label)
{
	if (label == MANAGED_NO_LABEL)
		return (struct managed_collection){MANAGED_NO_GENERATION, PAIR_MAX, PAIR_MAX};
	return (struct managed_collection){.generation = label >> 2 * PAIR_BITS & PAIR_MAX,
					   .reason = label >> PAIR_BITS & PAIR_MAX,
					   .type = label & PAIR_MAX};
}

static uint64_t key_of(const struct managed_raw *raw)
{
	return hash_mix(hash_mix(raw->event.tid, raw->key), raw->event.kind);
}

static int begin_one(struct pairing *p, const struct managed_raw *raw)
{
	uint64_t key = key_of(raw);

	p->e->unpaired[raw->event.kind] += hashmap_get(&p->begun, key) != NULL;
	return hashmap_put(&p->begun, key, (uint32_t)(raw - p->raws));
}

/* Adds what a begin and this end tell. The end may know itself how long it took. */
static int end_one(struct pairing *p, const struct managed_raw *raw)
{
	uint64_t key = key_of(raw);
	const uint32_t *begun = hashmap_get(&p->begun, key);

	if (!begun) {
		/* Precompiled methods are loaded without a compilation. */
		p->e->unpaired[raw->event.kind] += raw->event.kind != MANAGED_JIT;
		return 0;
	}
	struct managed_event event = p->raws[*begun].event;
	uint64_t took = raw->event.time_ns - event.time_ns;

	event.weight = raw->event.weight ? raw->event.weight : took;
	event.addr = raw->event.addr;
	event.time_ns = raw->event.time_ns;
	hashmap_remove(&p->begun, key);
	return vec_push(&p->e->v, event);
}

/* The open suspension by a thread; npauses: none. */
static size_t pause_of(const struct pairing *p, uint32_t suspender)
{
	size_t i = 0;

	while (i < p->npauses && p->pauses[i].suspender != suspender)
		i++;
	return i;
}

static void begin_pause(struct pairing *p, const struct managed_raw *raw)
{
	size_t i = pause_of(p, raw->event.tid);

	if (!raw->event.weight)
		return;
	p->e->unpaired[MANAGED_GC] += i < p->npauses || i == PAIR_PAUSES_MAX;
	if (i == PAIR_PAUSES_MAX)
		return;
	p->pauses[i] = (struct pair_pause){raw->event, raw->event.tid};
	p->npauses += i == p->npauses;
}

static bool has_stack(const struct pairing *p, const struct managed_event *event)
{
	return intern_len(&p->e->stacks, event->stack) > 0;
}

static int end_pause(struct pairing *p, const struct managed_raw *raw)
{
	size_t i = pause_of(p, raw->event.tid);

	if (i == p->npauses)
		return 0; /* of a suspension for another reason */
	struct managed_event event = p->pauses[i].event;

	event.collector = p->pauses[i].suspender;
	p->pauses[i] = p->pauses[--p->npauses];
	event.weight = raw->event.time_ns - event.time_ns;
	event.time_ns = raw->event.time_ns;
	if (event.label == MANAGED_NO_LABEL)
		event.label = p->background;
	return vec_push(&p->e->v, event);
}

/* A collection begins: it is what the threads are stopped for. */
static void begin_collection(struct pairing *p, const struct managed_raw *raw)
{
	for (size_t i = 0; i < p->npauses; i++) {
		struct managed_event *pause = &p->pauses[i].event;

		if (pause->label == MANAGED_NO_LABEL || pause->label < raw->event.label)
			pause->label = raw->event.label;
		/* With threads of the GC, another thread needed it. */
		if (!has_stack(p, pause) && p->triggered.weight) {
			pause->tid = p->triggered.tid;
			pause->stack = p->triggered.stack;
		}
	}
	p->triggered.weight = 0;
	if (managed_collection_of(raw->event.label).type != PAIR_TYPE_BACKGROUND) {
		p->blocking_ns = raw->event.time_ns;
		return;
	}
	p->background_ns = raw->event.time_ns;
	p->background = raw->event.label;
	p->background_count = raw->key;
}

/*
 * The phases of a blocking collection follow one another from its begin, and end before its history
 * is sent. .NET 8 tells UINT32_MAX as the time of the last one. A collection that was to be one in
 * the background may become a blocking one.
 */
static int add_phases(struct pairing *p, const struct managed_raw *raw)
{
	static const uint8_t phases[2][4] = {
		{MANAGED_PHASE_MARK, MANAGED_PHASE_PLAN, MANAGED_PHASE_SWEEP},
		{MANAGED_PHASE_MARK, MANAGED_PHASE_PLAN, MANAGED_PHASE_RELOCATE,
		 MANAGED_PHASE_COMPACT}};
	const struct managed_history *h = &p->histories[raw->key];
	struct managed_event event = raw->event;
	uint64_t *begin = p->blocking_ns ? &p->blocking_ns : &p->background_ns, from = *begin,
		 us = 0, rest = 0; /* rest: time of the phases after the plan */
	int r = 0;

	for (uint32_t i = MANAGED_HISTORY_MARKS + 1; i < h->n; i++)
		rest += h->us[i] * (NS_PER_MS / 1000);
	if (h->n == MANAGED_HISTORY_MARKS)
		p->background_ns = 0;
	if (h->n < MANAGED_HISTORY_SWEEPING || !from)
		return 0;
	*begin = 0;
	for (uint32_t i = 0; i < h->n && !r; i++) {
		us += h->us[i];
		if (i + 1 < MANAGED_HISTORY_MARKS)
			continue;
		event.label =
			phases[h->n == MANAGED_HISTORY_COMPACTING][i + 1 - MANAGED_HISTORY_MARKS];
		/* Something not told comes before it. */
		if (event.label == MANAGED_PHASE_RELOCATE && from + rest < raw->event.time_ns)
			from = raw->event.time_ns - rest;
		event.time_ns = from + us * (NS_PER_MS / 1000);
		if (event.time_ns > raw->event.time_ns)
			event.time_ns = raw->event.time_ns;
		event.weight = event.time_ns - from;
		from = event.time_ns;
		us = 0;
		r = vec_push(&p->e->v, event);
	}
	return r;
}

static int pair_one(struct pairing *p, const struct managed_raw *raw)
{
	switch (raw->id) {
	case MANAGED_ID_CONTENTION_START:
	case MANAGED_ID_JITTING_STARTED:
	case MANAGED_ID_BACKGROUND_BEGIN:
		return begin_one(p, raw);
	case MANAGED_ID_BACKGROUND_SWEEP: {
		int r = end_one(p, raw);

		return r ? r : begin_one(p, raw);
	}
	case MANAGED_ID_GC_HISTORY:
		return add_phases(p, raw);
	case MANAGED_ID_CONTENTION_STOP:
	case MANAGED_ID_METHOD_LOAD:
	case MANAGED_ID_BACKGROUND_END:
		return end_one(p, raw);
	case MANAGED_ID_SUSPEND_BEGIN:
		begin_pause(p, raw);
		return 0;
	case MANAGED_ID_RESTART_END:
		return end_pause(p, raw);
	case MANAGED_ID_GC_START:
		begin_collection(p, raw);
		return 0;
	case MANAGED_ID_GC_END:
		if (raw->key == p->background_count)
			p->background = MANAGED_NO_LABEL;
		return 0;
	case MANAGED_ID_GC_TRIGGERED:
		p->triggered = raw->event;
		p->triggered.weight = has_stack(p, &raw->event);
		return 0;
	case MANAGED_ID_POOL_ADJUSTED:
		return raw->event.weight ? vec_push(&p->e->v, raw->event) : 0;
	case MANAGED_ID_ALLOCATION_TICK:
		return p->e->exact_samples ? 0 : vec_push(&p->e->v, raw->event);
	default:
		return vec_push(&p->e->v, raw->event);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct managed_raw *x = a, *y = b;

	if (x->event.time_ns != y->event.time_ns)
		return x->event.time_ns < y->event.time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int managed_events_pair(struct managed_events *e, struct managed_raws *raws)
{
	struct pairing p = {.e = e,
			    .raws = raws->v.v,
			    .histories = raws->histories.v,
			    .background = MANAGED_NO_LABEL};
	int r = 0;

	if (raws->v.len)
		qsort(raws->v.v, raws->v.len, sizeof(*raws->v.v), by_time);
	for (size_t i = 0; i < raws->v.len && !r; i++)
		r = pair_one(&p, &raws->v.v[i]);
	e->unpaired[MANAGED_GC] += p.npauses;
	for (size_t i = 0; i < p.begun.nslots; i++)
		if (p.begun.slots[i].used)
			e->unpaired[p.raws[p.begun.slots[i].value].event.kind]++;
	hashmap_free(&p.begun);
	return r;
}

const char *managed_collection_reason(uint32_t reason)
{
	/* Source: enum gc_reason of dotnet/runtime. */
	static const char *const reasons[] = {"small objects",
					      "induced",
					      "low memory",
					      "empty",
					      "large objects",
					      "out of space",
					      "out of space",
					      "induced, not forced",
					      "internal",
					      "induced, low memory",
					      "induced, compacting",
					      "low memory of the host",
					      "full GC notice",
					      "low memory of the host"};

	return reason < sizeof(reasons) / sizeof(reasons[0]) ? reasons[reason] : "other reason";
}

const char *managed_collection_type(uint32_t type)
{
	static const char *const types[] = {"blocking", "background", "foreground"};

	return type < sizeof(types) / sizeof(types[0]) ? types[type] : "unknown";
}

const char *managed_phase_word(enum managed_phase phase)
{
	static const char *const words[MANAGED_PHASES] = {
		[MANAGED_PHASE_OTHER] = "other",
		[MANAGED_PHASE_BACKGROUND] = "background",
		[MANAGED_PHASE_MARK] = "mark",
		[MANAGED_PHASE_PLAN] = "plan",
		[MANAGED_PHASE_RELOCATE] = "relocate",
		[MANAGED_PHASE_COMPACT] = "compact",
		[MANAGED_PHASE_SWEEP] = "sweep",
		[MANAGED_PHASE_BACKGROUND_MARK] = "background mark",
		[MANAGED_PHASE_BACKGROUND_SWEEP] = "background sweep",
	};

	return words[phase < MANAGED_PHASES ? phase : MANAGED_PHASE_OTHER];
}
