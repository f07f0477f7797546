/* The times that the scheduler counted, shared out among the waits that were seen. */
#include "sampler/offcpu_impl.h"

#include <string.h>

/* Of fewer waits the parts say little, and less of long ones than they should. */
#define SETTLE_WAITS 100

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static bool alike(const struct offcpu_share *a, const struct offcpu_share *b)
{
	return a->thread == b->thread && a->stack == b->stack && a->waker_stack == b->waker_stack && a->waker == b->waker &&
	       a->wait == b->wait && a->stayed == b->stayed && a->is_short == b->is_short;
}

static int put(struct offcpu *o, const struct offcpu_share *share)
{
	const struct offcpu_share s = *share;
	uint64_t key = mix(mix(mix(s.thread, s.stack), (uint64_t)s.waker_stack << 32 | (uint32_t)s.waker),
			   (uint64_t)s.wait << 2 | (uint64_t)s.stayed << 1 | s.is_short);
	uint32_t *index;
	int fresh;

	if (o->shares.len == OFFCPU_SHARES_MAX && !hashmap_get(&o->share_of, key)) {
		o->counts.overflow++;
		return 0;
	}
	for (;; key++) {
		int r = hashmap_entry(&o->share_of, key, (uint32_t)o->shares.len, &index, &fresh);

		if (r)
			return r;
		if (fresh)
			return vec_push(&o->shares, s);
		if (alike(&o->shares.v[*index], &s))
			break;
	}
	o->shares.v[*index].count += s.count;
	o->shares.v[*index].blocked_ns += s.blocked_ns;
	o->shares.v[*index].runnable_ns += s.runnable_ns;
	return 0;
}

int offcpu_share(struct offcpu *o, const struct offcpu_thread *t, const struct offcpu_share *share)
{
	struct offcpu_share s = *share;

	s.thread = (uint32_t)(t - o->threads.v);
	if (s.is_short) {
		s.stack = s.waker_stack = OFFCPU_NO_STACK;
		s.waker = 0;
	}
	return put(o, &s);
}

/* part of whole, of total: so that the parts of all, one after the other, sum up to it. */
static uint64_t cut(uint64_t total, uint64_t *done, uint64_t part, uint64_t whole, uint64_t *given)
{
	*done += part;
	uint64_t upto = whole ? (uint64_t)((unsigned __int128)total * *done / whole) : 0, mine = upto - *given;

	*given = upto;
	return mine;
}

static uint64_t share_ns(const struct offcpu_share *s)
{
	return s->blocked_ns + s->runnable_ns;
}

/* Time of which no wait was seen is of those of the other stratum: few of a thread's long waits begin in a window, often none. */
static void join_strata(struct offcpu_thread *t)
{
	for (size_t i = 0; i < 2; i++) {
		if (!t->settle.due[i] || !t->settle.due[!i] || t->settle.seen_ns[i] || !t->settle.seen_ns[!i])
			continue;
		t->owed_ns[!i] += t->owed_ns[i];
		t->owed_ns[i] = 0;
	}
}

/* Whose time is shared out now. */
static void choose(struct offcpu *o, bool last)
{
	bool full = o->shares.len > OFFCPU_SHARES_MAX / 2;

	for (size_t i = 0; i < o->shares.len; i++) {
		struct offcpu_share *s = &o->shares.v[i];
		struct offcpu_thread *t = &o->threads.v[s->thread];

		t->settle.seen_ns[s->stayed] += share_ns(s);
		t->settle.seen += s->stayed ? 0 : s->count;
	}
	for (size_t i = 0; i < o->threads.len; i++) {
		struct offcpu_thread *t = &o->threads.v[i];

		t->settle.due[1] = last || full || t->ended;
		t->settle.due[0] = t->settle.due[1] || t->settle.seen >= SETTLE_WAITS;
		join_strata(t);
	}
}

/* Each share gets its part of what its thread is owed, divided as it was seen. */
static void scale_times(struct offcpu *o)
{
	for (size_t i = 0; i < o->shares.len; i++) {
		struct offcpu_share *s = &o->shares.v[i];
		struct offcpu_thread *t = &o->threads.v[s->thread];
		uint64_t seen = share_ns(s), ns;

		s->settled = t->settle.due[s->stayed];
		if (!s->settled)
			continue;
		ns = cut(t->owed_ns[s->stayed], &t->settle.cut_ns[s->stayed], seen, t->settle.seen_ns[s->stayed],
			 &t->settle.given_ns[s->stayed]);
		if (seen)
			s->count = (uint64_t)((double)s->count * (double)ns / (double)seen + 0.5);
		s->runnable_ns = seen ? (uint64_t)((unsigned __int128)ns * s->runnable_ns / seen) : 0;
		s->blocked_ns = ns - s->runnable_ns;
		t->settle.runnable_ns += s->runnable_ns;
		t->settle.blocked_ns += s->blocked_ns;
		t->settle.count += s->count;
	}
}

/* How long it waited for a CPU is exact too. */
static void scale_kinds(struct offcpu *o, struct offcpu_share *s)
{
	struct offcpu_thread *t = &o->threads.v[s->thread];
	uint64_t all = t->settle.runnable_ns + t->settle.blocked_ns, runnable = t->owed_runnable_ns < all ? t->owed_runnable_ns : all;
	bool by_count = (!t->settle.runnable_ns || !o->wakings) && t->settle.count;

	if (!by_count && !t->settle.runnable_ns)
		return;
	if (!t->settle.blocked_ns)
		runnable = all;
	s->blocked_ns = cut(all - runnable, &t->settle.cut_blocked, s->blocked_ns, t->settle.blocked_ns, &t->settle.gave_blocked);
	s->runnable_ns = by_count ? cut(runnable, &t->settle.cut_runnable, s->count, t->settle.count, &t->settle.gave_runnable)
				  : cut(runnable, &t->settle.cut_runnable, s->runnable_ns, t->settle.runnable_ns, &t->settle.gave_runnable);
}

static int emit(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_share *s, uint64_t time_ns)
{
	struct offcpu_interval i = {
		.tid = t->tid,
		.waker = s->waker,
		.out_ns = o->epoch_ns,
		.in_ns = time_ns,
		.blocked_ns = s->blocked_ns,
		.runnable_ns = s->runnable_ns,
		.count = s->count,
		.stack = s->stack,
		.waker_stack = s->waker_stack,
		.wait = s->wait,
		.estimated = true,
	};

	if (!share_ns(s))
		return 0;
	if (!s->is_short)
		return offcpu_emit(o, t, &i);
	t->totals.blocked_ns += s->blocked_ns;
	t->totals.runnable_ns += s->runnable_ns;
	t->totals.short_ns += share_ns(s);
	t->totals.estimated_ns += share_ns(s);
	t->totals.short_count += s->count;
	return 0;
}

/* What nothing was seen of waits for an epoch in which something is. */
static int settle_thread(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns, bool last)
{
	uint64_t given = t->settle.given_ns[0] + t->settle.given_ns[1], runnable = t->owed_runnable_ns < given ? t->owed_runnable_ns : given;
	struct offcpu_share rest = {.stack = OFFCPU_NO_STACK, .waker_stack = OFFCPU_NO_STACK};

	for (size_t i = 0; i < 2; i++) {
		t->owed_ns[i] -= t->settle.given_ns[i];
		if (last)
			rest.blocked_ns += t->owed_ns[i];
	}
	t->owed_runnable_ns -= runnable;
	memset(&t->settle, 0, sizeof(t->settle));
	if (!last)
		return 0;
	t->owed_ns[0] = t->owed_ns[1] = 0;
	rest.runnable_ns = t->owed_runnable_ns < rest.blocked_ns ? t->owed_runnable_ns : rest.blocked_ns;
	rest.blocked_ns -= rest.runnable_ns;
	t->owed_runnable_ns = 0;
	return emit(o, t, &rest, time_ns);
}

/* Those that are settled become intervals, the others stay. */
static int emit_shares(struct offcpu *o, uint64_t time_ns)
{
	size_t n = o->shares.len;
	int r = 0;

	hashmap_free(&o->share_of);
	o->shares.len = 0;
	for (size_t i = 0; i < n && !r; i++) {
		struct offcpu_share s = o->shares.v[i];

		if (!s.settled) {
			r = put(o, &s); /* no further than where it was */
			continue;
		}
		scale_kinds(o, &s);
		r = emit(o, &o->threads.v[s.thread], &s, time_ns);
	}
	return r;
}

int offcpu_settle(struct offcpu *o, uint64_t time_ns, bool last)
{
	int r = 0;

	for (size_t i = 0; i < o->threads.len && last && !r; i++)
		if (o->threads.v[i].carried)
			r = offcpu_end_carry(o, &o->threads.v[i]);
	choose(o, last);
	scale_times(o);
	if (!r)
		r = emit_shares(o, time_ns);
	for (size_t i = 0; i < o->threads.len && !r; i++) {
		struct offcpu_thread *t = &o->threads.v[i];

		if (t->ended)
			continue;
		if (last)
			offcpu_forget_stays(t);
		/* Nobody looked. */
		if (o->whole && t->base_ns < o->mark_ns) {
			offcpu_unwatched(t, o->mark_ns - t->base_ns);
			t->base_ns = o->mark_ns;
			t->looked = false;
			t->ahead_ns = 0;
		}
		r = settle_thread(o, t, time_ns, last);
	}
	while (o->gone.len && !r) {
		uint32_t index = o->gone.v[--o->gone.len];

		r = settle_thread(o, &o->threads.v[index], time_ns, true);
		if (!r)
			r = offcpu_release(o, index);
	}
	o->epoch_ns = time_ns;
	o->whole = false;
	return r;
}
