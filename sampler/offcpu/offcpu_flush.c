/* Divides the times that the scheduler counted among the recorded waits. */
#include "sampler/offcpu/offcpu_impl.h"

#include <string.h>

/* Flush at least this many waits; fewer give poor estimates, above all of long waits. */
#define FLUSH_WAITS 100

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static bool alike(const struct offcpu_share *a, const struct offcpu_share *b)
{
	return a->thread == b->thread && a->stack == b->stack && a->waker_stack == b->waker_stack &&
	       a->waker == b->waker && a->wait == b->wait && a->stayed == b->stayed &&
	       a->is_short == b->is_short;
}

static int put(struct offcpu *o, const struct offcpu_share *share)
{
	const struct offcpu_share s = *share;
	uint64_t key =
		mix(mix(mix(s.thread, s.stack), (uint64_t)s.waker_stack << 32 | (uint32_t)s.waker),
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
	o->threads.v[s.thread].is_shared = true;
	if (s.is_short) {
		s.stack = s.waker_stack = OFFCPU_NO_STACK;
		s.waker = 0;
	}
	return put(o, &s);
}

/* Returns the part of total that corresponds to `part` of `whole`. All parts add up to total. */
static uint64_t cut(uint64_t total, uint64_t *done, uint64_t part, uint64_t whole, uint64_t *given)
{
	*done += part;
	uint64_t upto = whole ? (uint64_t)((unsigned __int128)total * *done / whole) : 0,
		 mine = upto - *given;

	*given = upto;
	return mine;
}

static uint64_t share_ns(const struct offcpu_share *s)
{
	return s->blocked_ns + s->runnable_ns;
}

/* Moves time without a recorded wait to the other stratum. Few long waits begin in a window. */
static void join_strata(struct offcpu_thread *t)
{
	for (size_t i = 0; i < 2; i++) {
		if (!t->flush.due[i] || !t->flush.due[!i] || t->flush.seen_ns[i] ||
		    !t->flush.seen_ns[!i])
			continue;
		t->pending_ns[!i] += t->pending_ns[i];
		t->pending_ns[i] = 0;
	}
}

/* Selects the threads to flush. */
static void choose(struct offcpu *o, bool last)
{
	bool full = o->shares.len > OFFCPU_SHARES_MAX / 2;

	for (size_t i = 0; i < o->shares.len; i++) {
		struct offcpu_share *s = &o->shares.v[i];
		struct offcpu_thread *t = &o->threads.v[s->thread];

		t->flush.seen_ns[s->stayed] += share_ns(s);
		t->flush.seen += s->stayed ? 0 : s->count;
	}
	for (size_t i = 0; i < o->threads.len; i++) {
		struct offcpu_thread *t = &o->threads.v[i];

		t->flush.due[1] = last || full || t->ended;
		t->flush.due[0] = t->flush.due[1] || t->flush.seen >= FLUSH_WAITS;
		join_strata(t);
	}
}

/* Scales each share to its part of the pending time. Blocked and runnable time keep their ratio. */
static void scale_times(struct offcpu *o)
{
	for (size_t i = 0; i < o->shares.len; i++) {
		struct offcpu_share *s = &o->shares.v[i];
		struct offcpu_thread *t = &o->threads.v[s->thread];
		uint64_t seen = share_ns(s), ns;

		s->flushed = t->flush.due[s->stayed];
		if (!s->flushed)
			continue;
		ns = cut(t->pending_ns[s->stayed], &t->flush.cut_ns[s->stayed], seen,
			 t->flush.seen_ns[s->stayed], &t->flush.given_ns[s->stayed]);
		if (seen)
			s->count = (uint64_t)((double)s->count * (double)ns / (double)seen + 0.5);
		s->runnable_ns =
			seen ? (uint64_t)((unsigned __int128)ns * s->runnable_ns / seen) : 0;
		s->blocked_ns = ns - s->runnable_ns;
		t->flush.runnable_ns += s->runnable_ns;
		t->flush.blocked_ns += s->blocked_ns;
		t->flush.count += s->wait == OFFCPU_BLOCKED ? s->count : 0;
	}
}

/*
 * Corrects blocked and runnable time, because the sum of runnable time is exact too. With wakings,
 * all runnable times are scaled alike. Without them, the rest beyond the waits of preempted threads
 * is divided by the number of the other waits.
 */
static void scale_kinds(struct offcpu *o, struct offcpu_share *s)
{
	struct offcpu_thread *t = &o->threads.v[s->thread];
	uint64_t all = t->flush.runnable_ns + t->flush.blocked_ns,
		 runnable = t->pending_runnable_ns < all ? t->pending_runnable_ns : all;
	bool by_count = t->flush.count && runnable > t->flush.runnable_ns &&
			(!o->wakings || !t->flush.runnable_ns);
	/* Without a recorded wait of one kind, each wait has the same part of that kind. */
	uint64_t own = share_ns(s), blocked_all = t->flush.blocked_ns ? t->flush.blocked_ns : all,
		 runnable_all = t->flush.runnable_ns ? t->flush.runnable_ns : all;
	uint64_t blocked = t->flush.blocked_ns ? s->blocked_ns : own;

	s->blocked_ns = cut(all - runnable, &t->flush.cut_blocked, blocked, blocked_all,
			    &t->flush.gave_blocked);
	if (by_count)
		s->runnable_ns += cut(runnable - t->flush.runnable_ns, &t->flush.cut_runnable,
				      s->wait == OFFCPU_BLOCKED ? s->count : 0, t->flush.count,
				      &t->flush.gave_runnable);
	else
		s->runnable_ns = cut(runnable, &t->flush.cut_runnable,
				     t->flush.runnable_ns ? s->runnable_ns : own, runnable_all,
				     &t->flush.gave_runnable);
}

static int emit(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_share *s,
		uint64_t time_ns)
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

/* Keeps time without a recorded wait for a later epoch; last: hands it out without a stack. */
static int finish_flush(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns, bool last)
{
	uint64_t given = t->flush.given_ns[0] + t->flush.given_ns[1],
		 runnable = t->pending_runnable_ns < given ? t->pending_runnable_ns : given;
	struct offcpu_share rest = {.stack = OFFCPU_NO_STACK, .waker_stack = OFFCPU_NO_STACK};

	for (size_t i = 0; i < 2; i++) {
		t->pending_ns[i] -= t->flush.given_ns[i];
		if (last)
			rest.blocked_ns += t->pending_ns[i];
	}
	t->pending_runnable_ns -= runnable;
	memset(&t->flush, 0, sizeof(t->flush));
	if (!last)
		return 0;
	t->pending_ns[0] = t->pending_ns[1] = 0;
	rest.runnable_ns =
		t->pending_runnable_ns < rest.blocked_ns ? t->pending_runnable_ns : rest.blocked_ns;
	rest.blocked_ns -= rest.runnable_ns;
	t->pending_runnable_ns = 0;
	return emit(o, t, &rest, time_ns);
}

/* Hands out flushed shares and keeps the others. */
static int emit_shares(struct offcpu *o, uint64_t time_ns)
{
	size_t n = o->shares.len;
	int r = 0;

	hashmap_free(&o->share_of);
	o->shares.len = 0;
	for (size_t i = 0; i < n && !r; i++) {
		struct offcpu_share s = o->shares.v[i];

		if (!s.flushed) {
			r = put(o, &s); /* moves only to a lower index */
			continue;
		}
		scale_kinds(o, &s);
		r = emit(o, &o->threads.v[s.thread], &s, time_ns);
	}
	return r;
}

int offcpu_finish_ended(struct offcpu *o, uint32_t thread, uint64_t time_ns)
{
	struct offcpu_thread *t = &o->threads.v[thread];

	offcpu_end_stay(t);
	int r = finish_flush(o, t, time_ns, true);

	return r ? r : offcpu_release(o, thread);
}

int offcpu_flush(struct offcpu *o, uint64_t time_ns, bool last)
{
	int r = 0;

	for (size_t i = 0; i < o->threads.len && !r; i++) {
		struct offcpu_thread *t = &o->threads.v[i];

		if (last && t->carried)
			r = offcpu_end_carry(o, t);
		if (last || t->ended)
			offcpu_end_stay(t);
	}
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
		/* The thread was never polled. */
		if (o->whole && t->base_ns < o->mark_ns) {
			offcpu_add_unwatched(t, o->mark_ns - t->base_ns);
			t->base_ns = o->mark_ns;
			t->polled = false;
			t->ahead_ns = 0;
		}
		r = finish_flush(o, t, time_ns, last);
	}
	while (o->gone.len && !r)
		r = offcpu_finish_ended(o, o->gone.v[--o->gone.len], time_ns);
	o->epoch_ns = time_ns;
	o->whole = false;
	return r;
}
