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

/* The events say this of a wait. */
enum fact {
	FACT_CPU = 1, /* the part without a CPU */
	FACT_LOCK = 2,
	FACT_IN_PAUSE = 4,   /* began in a pause */
	FACT_NEAR_PAUSE = 8, /* began shortly before it */
	FACT_STARVED = 16,
	FACT_COMPILES = 32, /* in its own compilation */
	FACT_COMPILED = 64, /* ended with the compilation by another thread */
	FACT_ESTIMATED = 128,
};

struct cause_group {
	uint32_t thread, stack, event, facts;
	uint64_t ns, waits;
};

struct causes {
	const struct evidence *evidence;
	VEC(struct cause_group) groups;
	struct hashmap by_key; /* -> index of groups */
};

int causes_new(const struct evidence *evidence, struct causes **ret_causes)
{
	struct causes *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->evidence = evidence;
	*ret_causes = c;
	return 0;
}

void causes_free(struct causes *c)
{
	if (!c)
		return;
	vec_free(&c->groups);
	hashmap_free(&c->by_key);
	free(c);
}

static const struct evidence_interval *find(const struct causes *c, enum evidence_kind kind,
					    int32_t tid, const struct cause_wait *w)
{
	return evidence_of_half(c->evidence, kind, tid, w->begin_ns, w->end_ns);
}

static uint32_t facts_of(const struct causes *c, const struct cause_wait *w, uint32_t *ret_event)
{
	const struct evidence_interval *lock = find(c, EVIDENCE_LOCK, w->tid, w),
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
	if (evidence_is_after_compilation(c->evidence, w->tid, w->begin_ns, w->end_ns))
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

	if (wait->runnable_ns)
		r = add(c, &group);
	if (r || !wait->blocked_ns)
		return r;
	group.facts = wait->is_estimated ? FACT_ESTIMATED : facts_of(c, wait, &group.event);
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
		names = (struct cause_by_names){.cause = (enum wait_cause)(*at >> 1),
						.in_runtime = *at & 1};
		const struct cause_sum sum = {.thread = g->thread,
					      .stack = g->stack,
					      .cause = cause_of(g, names, idle),
					      .is_estimated = g->facts & FACT_ESTIMATED,
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
