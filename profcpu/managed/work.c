#include "profcpu/managed/work.h"

#include "base/hash.h"
#include "base/hashmap.h"
#include "profcpu/managed/cause_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Names of the GC's threads. Source: gc/init.cpp and gc/background.cpp of dotnet/runtime. */
#define WORK_BACKGROUND_THREAD ".NET BGC"
#define WORK_SERVER_THREAD ".NET Server GC"

/* The names on a stack tell this. */
enum work_names {
	WORK_IN_NATIVE = 1, /* the runtime of single-file programs is part of the program's file */
	WORK_IN_JIT = 2,
};

struct work {
	const struct evidence *evidence;
	VEC(struct work_sum) sums;
	struct hashmap by_key; /* -> index of sums */
	struct hashmap names;  /* stack -> enum work_names */
};

int work_new(const struct evidence *evidence, struct work **ret_work)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->evidence = evidence;
	*ret_work = w;
	return 0;
}

void work_free(struct work *w)
{
	if (!w)
		return;
	vec_free(&w->sums);
	hashmap_free(&w->by_key);
	hashmap_free(&w->names);
	free(w);
}

static int names_of(struct work *w, const struct profile *profile, uint32_t stack,
		    uint32_t *ret_names)
{
	uint32_t *at;
	int fresh, r = hashmap_entry(&w->names, stack, 0, &at, &fresh);

	if (!r && fresh) {
		struct cause_by_names by = cause_of_stack(profile, stack);

		*at = (by.in_native ? WORK_IN_NATIVE : 0) | (by.in_jit ? WORK_IN_JIT : 0);
	}
	*ret_names = r ? 0 : *at;
	return r;
}

/* Whether a thread collects at a time, and the phase. */
static bool collects(const struct work *w, const struct profile *profile,
		     const struct work_sample *s, uint32_t *ret_phase)
{
	const struct profile_thread *t = profile_thread_of(profile, s->thread);
	const char *comm = profile_text_of(profile, t->comm, NULL);
	bool background = !strcmp(comm, WORK_BACKGROUND_THREAD);

	if (!background && strcmp(comm, WORK_SERVER_THREAD) &&
	    !evidence_at(w->evidence, EVIDENCE_COLLECTOR, s->tid, s->time_ns))
		return false;
	const struct evidence_interval *phase =
		evidence_at(w->evidence, EVIDENCE_PHASE, background ? s->tid : 0, s->time_ns);

	*ret_phase = phase        ? phase->event
		     : background ? MANAGED_PHASE_BACKGROUND
				  : MANAGED_PHASE_OTHER;
	return true;
}

static int add(struct work *w, const struct work_sum *sum)
{
	uint64_t key = hash_mix((uint64_t)sum->thread << 32 | sum->stack,
				(uint64_t)sum->event << 1 | sum->compiles);
	uint32_t *index;
	int fresh, r = hashmap_entry(&w->by_key, key, (uint32_t)w->sums.len, &index, &fresh);

	if (!r && fresh)
		return vec_push(&w->sums, *sum);
	if (r)
		return r;
	struct work_sum *known = &w->sums.v[*index];

	if (__builtin_add_overflow(known->weight, sum->weight, &known->weight))
		known->weight = UINT64_MAX;
	known->samples += sum->samples;
	return 0;
}

int work_take(struct work *w, const struct profile *profile, const struct work_sample *sample)
{
	struct work_sum sum = {.thread = sample->thread,
			       .stack = sample->stack,
			       .weight = sample->weight,
			       .samples = 1};
	uint32_t names;

	if (sample->stack == PROFILE_STACK_EMPTY)
		return 0;
	int r = names_of(w, profile, sample->stack, &names);

	if (r || !names)
		return r;
	if (collects(w, profile, sample, &sum.event))
		return add(w, &sum);
	const struct evidence_interval *jit =
		evidence_at(w->evidence, EVIDENCE_JIT, sample->tid, sample->time_ns);

	if (!jit && !(names & WORK_IN_JIT))
		return 0;
	sum.compiles = true;
	sum.event = jit ? jit->event : UINT32_MAX;
	return add(w, &sum);
}

int work_each(const struct work *w, int (*fn)(void *ctx, const struct work_sum *sum), void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < w->sums.len && !r; i++)
		r = fn(ctx, &w->sums.v[i]);
	return r;
}
