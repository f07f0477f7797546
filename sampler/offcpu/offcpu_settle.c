/*
 * Corrects how finished waits divide into blocked and runnable time. The scheduler counts exactly
 * how long a thread waited for a CPU. So finished waits are held until the next poll of their
 * thread, and the difference to the count is divided among them.
 *
 * Without recorded wakings, the end of the blocked time is unknown. With them it is a little early,
 * because the scheduler begins to count when a CPU has put the thread into its queue.
 */
#include "sampler/offcpu/offcpu_impl.h"

#include <errno.h>
#include <stdlib.h>

/* Kinds of waits, from those that a correction changes first. */
enum settle_tier { TIER_UNKNOWN, TIER_WOKEN, TIER_RUNNABLE, TIERS };

static enum settle_tier tier_of(const struct offcpu_interval *i)
{
	if (i->wait == OFFCPU_RUNNABLE)
		return TIER_RUNNABLE;
	return i->woken_ns ? TIER_WOKEN : TIER_UNKNOWN;
}

static int unhold(struct offcpu *o, struct offcpu_thread *t)
{
	int r = 0;

	for (uint32_t at = t->held_first, next; at && !r; at = next) {
		const struct offcpu_interval i = o->held.v[at - 1].interval;

		next = o->held.v[at - 1].next;
		o->held.v[at - 1].next = o->held_unused;
		o->held_unused = at;
		r = offcpu_emit(o, t, &i);
	}
	t->held_first = t->held_last = t->nheld = 0;
	return r;
}

/* Accounts for a wait that is handed out before the poll that counts it. */
static void count_unsettled(struct offcpu_thread *t, const struct offcpu_interval *wait)
{
	t->totals.unsettled += tier_of(wait) == TIER_UNKNOWN;
	t->owed_ns -= (int64_t)wait->runnable_ns;
	t->settled.count++;
}

int offcpu_unhold(struct offcpu *o, struct offcpu_thread *t)
{
	for (uint32_t at = t->held_first; at; at = o->held.v[at - 1].next)
		count_unsettled(t, &o->held.v[at - 1].interval);
	return unhold(o, t);
}

int offcpu_hold(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_interval *interval)
{
	uint32_t at = o->held_unused;
	int r = 0;

	if (!at && o->held.len >= OFFCPU_HELD_MAX) {
		o->counts.overflow++;
		r = offcpu_unhold(o, t);
		at = o->held_unused;
		if (!r && !at) { /* other threads hold them all */
			count_unsettled(t, interval);
			r = offcpu_emit(o, t, interval);
		}
		if (r || !at)
			return r;
	}
	if (at)
		o->held_unused = o->held.v[at - 1].next;
	else
		r = vec_push(&o->held, ((struct offcpu_held){0}));
	if (r)
		return r;
	if (!at)
		at = (uint32_t)o->held.len;
	o->held.v[at - 1] = (struct offcpu_held){*interval, 0};
	*(t->held_last ? &o->held.v[t->held_last - 1].next : &t->held_first) = at;
	t->held_last = at;
	t->nheld++;
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The part of a wait that a correction can change. */
static uint64_t *part_of(struct offcpu_interval *i, bool more)
{
	return more ? &i->blocked_ns : &i->runnable_ns;
}

/*
 * Moves time of the waits of one tier, from blocked to runnable (more) or back. Each wait gives the
 * same time, if it has as much. *ns is reduced by the moved time. 0 or -ENOMEM.
 */
static int move(struct offcpu *o, const struct offcpu_thread *t, enum settle_tier tier, bool more,
		uint64_t *ns)
{
	size_t n = 0, i = 0;

	o->sizes.len = 0;
	for (uint32_t at = t->held_first; at; at = o->held.v[at - 1].next) {
		struct offcpu_interval *wait = &o->held.v[at - 1].interval;

		if (tier_of(wait) == tier && vec_push(&o->sizes, *part_of(wait, more)))
			return -ENOMEM;
	}
	n = o->sizes.len;
	if (!n)
		return 0;
	qsort(o->sizes.v, n, sizeof(*o->sizes.v), by_size);
	/* The smallest parts are moved whole. */
	for (; i < n && o->sizes.v[i] <= *ns / (n - i); i++)
		*ns -= o->sizes.v[i];
	uint64_t each = i < n ? *ns / (n - i) : UINT64_MAX, odd = i < n ? *ns % (n - i) : 0;

	for (uint32_t at = t->held_first; at; at = o->held.v[at - 1].next) {
		struct offcpu_interval *wait = &o->held.v[at - 1].interval;
		uint64_t part = *part_of(wait, more);

		if (tier_of(wait) != tier)
			continue;
		if (part > each) {
			part = each + (odd > 0);
			odd -= odd > 0;
		}
		*part_of(wait, more) -= part;
		*part_of(wait, !more) += part;
	}
	*ns = i < n ? 0 : *ns;
	return 0;
}

/* Divides the owed time among the held waits. The rest is owed further. */
static int pay(struct offcpu *o, struct offcpu_thread *t)
{
	bool more = t->owed_ns > 0;
	uint64_t ns = (uint64_t)(more ? t->owed_ns : -t->owed_ns);
	int r = 0;

	for (int tier = 0; tier < TIERS && ns && !r; tier++)
		r = move(o, t, (enum settle_tier)tier, more, &ns);
	t->owed_ns = more ? (int64_t)ns : -(int64_t)ns;
	return r;
}

int offcpu_settle(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat)
{
	uint64_t counted = offcpu_subtract(stat->wait_ns, t->settled.wait_ns), part = counted,
		 count = offcpu_subtract(stat->count, t->settled.count), known = 0;
	bool settles = t->settles;
	int r = 0;

	t->settled = *stat;
	t->settles = !o->estimating;
	if (!settles)
		return 0;
	/* The other waits were lost, or their switches in come after the poll. */
	if (count > t->nheld)
		part = (uint64_t)((unsigned __int128)counted * t->nheld / count);
	for (uint32_t at = t->held_first; at; at = o->held.v[at - 1].next)
		known += o->held.v[at - 1].interval.runnable_ns;
	t->owed_ns += (int64_t)part - (int64_t)known;
	if (t->held_first)
		r = pay(o, t);
	if (!t->doubt_ns)
		t->owed_ns += (int64_t)(counted - part);
	if (o->estimating)
		t->owed_ns -= (int64_t)t->cut_ns;
	return r ? r : unhold(o, t);
}
