#include "profile/groups.h"

#include "base/bigmem.h"
#include "base/hash.h"
#include "profile/stack_room.h"

#include <errno.h>
#include <stdlib.h>

#define GROUPS_MAX STACK_ROOM_MAX

static uint64_t groups_hash(uint32_t event, uint32_t thread, uint32_t stack)
{
	return hash_mix((uint64_t)thread << 32 | stack, event);
}

static int groups_grow(struct groups *g)
{
	size_t n = 1024;

	while (n < (g->all.len + GROUPS_BATCH) * 2)
		n *= 2;
	uint32_t *slots = bigmem_zeroed(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t k = 0; k < g->all.len; k++) {
		const struct profile_group *e = &g->all.v[k];
		size_t i = groups_hash(e->event, e->thread, e->stack) & (n - 1);

		while (slots[i])
			i = (i + 1) & (n - 1);
		slots[i] = (uint32_t)k + 1;
	}
	free(g->slots);
	g->slots = slots;
	g->nslots = n;
	return 0;
}

/* Makes room for the groups of a batch. */
static int groups_make_room(struct groups *g)
{
	if (g->all.len + GROUPS_BATCH > GROUPS_MAX)
		return -E2BIG;
	if (vec_reserve(&g->all, GROUPS_BATCH))
		return -ENOMEM;
	return (g->all.len + GROUPS_BATCH) * 2 > g->nslots ? groups_grow(g) : 0;
}

static void groups_sum(struct groups *g, const struct profile_sample *s)
{
	size_t mask = g->nslots - 1;
	size_t i = groups_hash(s->event, s->thread, s->stack) & mask;

	for (; g->slots[i]; i = (i + 1) & mask) {
		struct profile_group *e = &g->all.v[g->slots[i] - 1];

		if (e->event == s->event && e->thread == s->thread && e->stack == s->stack &&
		    e->samples < UINT32_MAX) {
			if (__builtin_add_overflow(e->weight, s->weight, &e->weight))
				e->weight = UINT64_MAX;
			e->samples++;
			return;
		}
	}
	g->all.v[g->all.len++] =
		(struct profile_group){s->weight, 1, s->event, s->thread, s->stack};
	g->slots[i] = (uint32_t)g->all.len;
}

static void groups_sum_batch(struct groups *g)
{
	for (size_t i = 0; i < g->nbatch; i++)
		groups_sum(g, &g->batch[i]);
	g->nbatch = 0;
}

int groups_add(struct groups *g, const struct profile_sample *sample)
{
	int r = g->nbatch ? 0 : groups_make_room(g);

	if (r)
		return r;
	g->batch[g->nbatch++] = *sample;
	if (g->nbatch == GROUPS_BATCH)
		groups_sum_batch(g);
	return 0;
}

void groups_end(struct groups *g)
{
	groups_sum_batch(g);
	free(g->slots);
	g->slots = NULL;
	g->nslots = 0;
}

void groups_free(struct groups *g)
{
	vec_free(&g->all);
	free(g->slots);
}
