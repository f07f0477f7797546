#include "base/fair_share.h"

#include <stddef.h>

/* Part of the limit that is counted for nobody, because most processes take little. */
#define FAIR_SHARE_UNNAMED 8

/* Looks up a taker. Sets last_place. */
static void fair_share_find(struct fair_share *s, int32_t taker)
{
	const uint32_t *place;

	if (s->last == taker || !s->takers.len)
		return;
	place = hashmap_get(&s->ids, (uint32_t)taker);
	s->last = taker;
	s->last_place = place ? *place + 1 : 0;
}

uint64_t fair_share_most(uint64_t others, uint64_t limit)
{
	double left = others < limit ? (double)(limit - others) : 0;

	return left > 0 ? (uint64_t)(left * left / (double)limit / 2) : 0;
}

uint64_t fair_share_room(struct fair_share *s, int32_t taker)
{
	if (!s->limit)
		return UINT64_MAX;
	fair_share_find(s, taker);
	uint64_t mine = s->last_place ? s->takers.v[s->last_place - 1] : 0;
	uint64_t others = s->taken - mine;
	uint64_t most = fair_share_most(others, s->limit);

	return most > mine ? most - mine : 0;
}

void fair_share_take(struct fair_share *s, int32_t taker, uint64_t amount)
{
	if (!s->limit)
		return;
	s->taken += amount;
	if (!s->takers.len && s->taken <= s->limit / FAIR_SHARE_UNNAMED)
		return;
	fair_share_find(s, taker);
	if (s->last_place) {
		s->takers.v[s->last_place - 1] += amount;
		return;
	}
	if (vec_reserve(&s->takers, 1) ||
	    hashmap_put(&s->ids, (uint32_t)taker, (uint32_t)s->takers.len))
		return;
	s->takers.v[s->takers.len++] = amount;
	s->last = taker;
	s->last_place = (uint32_t)s->takers.len;
}

void fair_share_free(struct fair_share *s)
{
	hashmap_free(&s->ids);
	vec_free(&s->takers);
}
