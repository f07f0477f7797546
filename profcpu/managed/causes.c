#include "profcpu/managed/causes.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "profile/idle.h"

#include <errno.h>
#include <stdlib.h>

/* The clocks of kernel and runtime agree within this. */
#define CAUSES_CLOCK_NS (NS_PER_MS / 20)
/* A thread that needs a collection may wait before the others are stopped. */
#define CAUSES_PAUSE_NEAR_NS NS_PER_MS
/* A thread may go on before the runtime has sent the event that the method is compiled. */
#define CAUSES_JIT_BEFORE_NS NS_PER_MS
/* The search gives up after so many intervals that end in the wait and take less than half of it.
 */
#define CAUSES_STEPS_MAX 64

/* The events say this of a wait. */
enum fact {
	FACT_CPU = 1, /* the part without a CPU */
	FACT_LOCK = 2,
	FACT_IN_PAUSE = 4,   /* began in a pause */
	FACT_NEAR_PAUSE = 8, /* began shortly before it */
	FACT_STARVED = 16,
	FACT_COMPILES = 32, /* in its own compilation */
	FACT_COMPILED = 64, /* ended with the compilation by another thread */
};

struct cause_group {
	uint32_t thread, stack, event, facts;
	uint64_t ns, waits;
};

struct causes {
	VEC(struct cause_interval) evidence[EVIDENCE_KINDS]; /* by tid and end, once sorted */
	VEC(struct cause_interval) compiled;                 /* by end: those of all threads */
	bool sorted;
	VEC(struct cause_group) groups;
	struct hashmap by_key; /* -> index of groups */
};

int causes_new(struct causes **ret_causes)
{
	*ret_causes = calloc(1, sizeof(**ret_causes));
	return *ret_causes ? 0 : -ENOMEM;
}

void causes_free(struct causes *c)
{
	if (!c)
		return;
	for (unsigned k = 0; k < EVIDENCE_KINDS; k++)
		vec_free(&c->evidence[k]);
	vec_free(&c->compiled);
	vec_free(&c->groups);
	hashmap_free(&c->by_key);
	free(c);
}

int causes_add(struct causes *c, enum cause_evidence kind, const struct cause_interval *interval)
{
	int r = vec_push(&c->evidence[kind], *interval);

	return r || kind != EVIDENCE_JIT ? r : vec_push(&c->compiled, *interval);
}

static int by_tid_and_end(const void *a, const void *b)
{
	const struct cause_interval *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static int by_end(const void *a, const void *b)
{
	const struct cause_interval *x = a, *y = b;

	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* Joins the times in which the pool had too few threads. */
static void join(struct causes *c)
{
	struct cause_interval *v = c->evidence[EVIDENCE_STARVATION].v;
	size_t n = 0;

	for (size_t i = 0; i < c->evidence[EVIDENCE_STARVATION].len; i++) {
		if (n && v[i].begin_ns <= v[n - 1].end_ns)
			v[n - 1].end_ns = v[i].end_ns;
		else
			v[n++] = v[i];
	}
	c->evidence[EVIDENCE_STARVATION].len = n;
}

static void sort(struct causes *c)
{
	for (unsigned k = 0; k < EVIDENCE_KINDS; k++)
		if (c->evidence[k].len)
			qsort(c->evidence[k].v, c->evidence[k].len, sizeof(*c->evidence[k].v),
			      by_tid_and_end);
	if (c->compiled.len)
		qsort(c->compiled.v, c->compiled.len, sizeof(*c->compiled.v), by_end);
	join(c);
	c->sorted = true;
}

/* The first of `n` sorted intervals that is not before `key`. */
static size_t first_of(const struct cause_interval *v, size_t n, const struct cause_interval *key,
		       int (*compare)(const void *, const void *))
{
	size_t from = 0;

	while (from < n) {
		size_t middle = from + (n - from) / 2;

		if (compare(&v[middle], key) < 0)
			from = middle + 1;
		else
			n = middle;
	}
	return from;
}

static uint64_t overlap_of(const struct cause_interval *i, const struct cause_wait *w)
{
	uint64_t begin = i->begin_ns > w->begin_ns ? i->begin_ns : w->begin_ns,
		 end = i->end_ns < w->end_ns ? i->end_ns : w->end_ns;

	return end > begin ? end - begin : 0;
}

/* The interval of a kind that takes at least half of a wait; NULL: none. */
static const struct cause_interval *find(const struct causes *c, enum cause_evidence kind,
					 int32_t tid, const struct cause_wait *w)
{
	const struct cause_interval key = {.tid = tid, .end_ns = w->begin_ns};
	const struct cause_interval *v = c->evidence[kind].v;
	size_t n = c->evidence[kind].len;

	size_t first = first_of(v, n, &key, by_tid_and_end);

	for (size_t i = first; i < n && v[i].tid == tid && i - first < CAUSES_STEPS_MAX; i++)
		if (overlap_of(&v[i], w) * 2 >= w->end_ns - w->begin_ns &&
		    v[i].begin_ns <= w->end_ns)
			return &v[i];
	return NULL;
}

/* Whether a compilation by another thread takes half of a wait, which ended with it or later. */
static bool is_after_compilation(const struct causes *c, const struct cause_wait *w)
{
	const struct cause_interval key = {.end_ns = w->begin_ns};
	size_t first = first_of(c->compiled.v, c->compiled.len, &key, by_end);

	for (size_t i = first; i < c->compiled.len && i - first < CAUSES_STEPS_MAX; i++) {
		const struct cause_interval *v = &c->compiled.v[i];

		if (v->end_ns > w->end_ns + CAUSES_JIT_BEFORE_NS)
			break;
		if (v->tid != w->tid && overlap_of(v, w) * 2 >= w->end_ns - w->begin_ns)
			return true;
	}
	return false;
}

static uint32_t facts_of(const struct causes *c, const struct cause_wait *w, uint32_t *ret_event)
{
	const struct cause_interval *lock = find(c, EVIDENCE_LOCK, w->tid, w),
				    *pause = find(c, EVIDENCE_PAUSE, 0, w);
	uint32_t facts = 0;

	*ret_event = lock ? lock->event : UINT32_MAX;
	if (lock)
		facts |= FACT_LOCK;
	if (pause && w->begin_ns + CAUSES_CLOCK_NS >= pause->begin_ns)
		facts |= FACT_IN_PAUSE;
	else if (pause && w->begin_ns + CAUSES_PAUSE_NEAR_NS >= pause->begin_ns)
		facts |= FACT_NEAR_PAUSE;
	if (find(c, EVIDENCE_STARVATION, 0, w))
		facts |= FACT_STARVED;
	if (find(c, EVIDENCE_JIT, w->tid, w))
		facts |= FACT_COMPILES;
	if (is_after_compilation(c, w))
		facts |= FACT_COMPILED;
	return facts;
}

static int add(struct causes *c, const struct cause_group *group)
{
	uint64_t key = hash_mix((uint64_t)group->thread << 32 | group->stack,
				(uint64_t)group->event << 32 | group->facts);
	uint32_t *index;
	int fresh, r = hashmap_entry(&c->by_key, key, (uint32_t)c->groups.len, &index, &fresh);

	if (!r && fresh)
		return vec_push(&c->groups, *group);
	if (r)
		return r;
	struct cause_group *g = &c->groups.v[*index];

	if (__builtin_add_overflow(g->ns, group->ns, &g->ns))
		g->ns = UINT64_MAX;
	g->waits += group->waits;
	return 0;
}

int causes_take(struct causes *c, const struct cause_wait *wait)
{
	struct cause_group group = {.thread = wait->thread,
				    .stack = wait->stack,
				    .event = UINT32_MAX,
				    .facts = FACT_CPU,
				    .ns = wait->runnable_ns,
				    .waits = !wait->blocked_ns};
	int r = 0;

	if (!c->sorted)
		sort(c);
	if (wait->runnable_ns)
		r = add(c, &group);
	if (r || !wait->blocked_ns)
		return r;
	group.facts = wait->is_estimated ? 0 : facts_of(c, wait, &group.event);
	group.ns = wait->blocked_ns;
	group.waits = 1;
	return add(c, &group);
}

static enum wait_cause cause_of(const struct cause_group *g, struct cause_by_names names,
				struct idle *idle)
{
	uint32_t facts = g->facts;

	if (facts & FACT_CPU)
		return CAUSE_CPU;
	if (facts & FACT_LOCK)
		return CAUSE_LOCK;
	if (names.in_runtime &&
	    (facts & FACT_IN_PAUSE || (facts & FACT_NEAR_PAUSE && names.cause == CAUSE_RUNTIME)))
		return CAUSE_GC;
	if (idle && idle_is(idle, g->thread, g->stack))
		return CAUSE_IDLE;
	if (names.cause == CAUSE_TASK && facts & FACT_STARVED)
		return CAUSE_STARVATION;
	if (names.cause == CAUSE_RUNTIME && facts & (FACT_COMPILES | FACT_COMPILED))
		return CAUSE_JIT;
	return names.cause;
}

static int finish(struct causes *c, struct profile *profile, struct idle *idle,
		  int (*fn)(void *ctx, const struct cause_sum *sum), void *ctx)
{
	struct hashmap known = {0}; /* stack -> its cause by names, and whether in the runtime */
	int r = 0;

	for (size_t i = 0; i < c->groups.len && !r; i++) {
		const struct cause_group *g = &c->groups.v[i];
		struct cause_by_names names;
		uint32_t *at;
		int fresh;

		r = hashmap_entry(&known, g->stack, 0, &at, &fresh);
		if (r)
			break;
		if (fresh) {
			names = cause_of_stack(profile, g->stack);
			*at = (uint32_t)names.cause << 1 | names.in_runtime;
		}
		names = (struct cause_by_names){(enum wait_cause)(*at >> 1), *at & 1};
		const struct cause_sum sum = {.thread = g->thread,
					      .stack = g->stack,
					      .cause = cause_of(g, names, idle),
					      .event = g->event,
					      .ns = g->ns,
					      .waits = g->waits};

		r = fn(ctx, &sum);
	}
	hashmap_free(&known);
	return r;
}

int causes_finish(struct causes *c, struct profile *profile,
		  int (*fn)(void *ctx, const struct cause_sum *sum), void *ctx)
{
	struct idle *idle = NULL;
	int r = idle_new(profile, &idle);

	if (!r)
		r = finish(c, profile, idle, fn, ctx);
	idle_free(idle);
	return r;
}
