/*
 * Estimates while throttled. Between two polls lie a time without events and a window with events.
 * Polls give the exact time off the CPU; the window shows a sample of the waits.
 *
 * A thread without a switch between two polls stayed in one wait. Time off the CPU has two strata,
 * and the sum of each is exact for each thread:
 *
 * - Long stays, [1]: the time from the first to the last poll in a wait. The poll before the last
 *   must be OFFCPU_STAY_NS or more after the first. So a request for the stack is answered before
 *   the wait ends, and long waits are not preferred. The stack may come later, so the time is kept
 *   for a while under the scheduler's count.
 * - All other time, [0], also the two ends of waits with long stays. It is divided in proportion to
 *   the weights of sampled waits.
 *
 * The samples of [0] are the waits that begin in a window. Windows come at random, so each wait is
 * a sample with the same chance p, whatever its length. Polls do not depend on the waits either.
 * Let w(L) be what a wait of length L adds to [0] on average over all times at which it may begin:
 * L minus its long stay. This is the weight of a sample, computed from the times of the latest
 * polls. Let S be the sum of w(L) over all waits with one stack. The expected time of this stack in
 * [0] is S, and the expected sum of its samples' weights is p S. The factor p is the same for all
 * stacks, so their ratios have no bias, except for two small errors:
 *
 * - The ratio of two sums with n samples has an error of the order 1/n.
 * - If a sample ends while events are off, its end is only known between two polls. `lasted`
 *   estimates it without bias if the polls double their distance from the window. With many
 *   threads, polls of all of them cost too much for that. Then only the threads in sampled waits
 *   are polled (offcpu_add_follow), which changes the lengths of samples, but not the long stays.
 *   If even these polls end before the wait does, short waits count for too much
 *   (docs/accuracy.md).
 *
 * Waits that had begun before a window are no samples: long ones would be seen too often.
 */
#include "sampler/offcpu/offcpu_impl.h"

#include <math.h>
#include <string.h>

#define TRIES 8 /* times at which a sampled wait is placed among the polls */

/* Index of the first poll at time_ns or later. */
static size_t first_mark(const struct offcpu *o, uint64_t time_ns)
{
	size_t low = 0, high = o->nmarks;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (o->marks[mid] < time_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void note_mark(struct offcpu *o, uint64_t time_ns)
{
	/* Leave out the time since the last windows. */
	if (o->nmarks && !o->estimating) {
		for (size_t i = 0; i < o->nmarks; i++)
			o->marks[i] += time_ns - o->mark_ns;
		return;
	}
	if (o->nmarks == OFFCPU_MARKS) {
		o->nmarks /= 2;
		memmove(o->marks, o->marks + o->nmarks, o->nmarks * sizeof(*o->marks));
	}
	o->marks[o->nmarks++] = time_ns;
}

/* Time of a wait that is not in the stratum of long stays, if the wait begins at from_ns. */
static uint64_t not_stayed(const struct offcpu *o, uint64_t from_ns, uint64_t ns)
{
	size_t first = first_mark(o, from_ns), end = first_mark(o, from_ns + ns + 1);

	if (end < first + 2 || o->marks[end - 2] - o->marks[first] < OFFCPU_STAY_NS)
		return ns;
	return ns - (o->marks[end - 1] - o->marks[first]);
}

/* Weight of a sampled wait: the mean of its not_stayed at any time. */
static uint64_t weight(struct offcpu *o, uint64_t ns)
{
	uint64_t span = o->nmarks ? o->marks[o->nmarks - 1] - o->marks[0] : 0, all = 0;

	if (ns < OFFCPU_STAY_NS || span / 2 < OFFCPU_STAY_NS)
		return ns;
	/* The weight of a longer wait is the same. */
	if (ns > span / 2)
		ns = span / 2;
	for (int i = 0; i < TRIES; i++) {
		uint64_t at = (o->placed++ * UINT64_C(0x9e3779b9)) & UINT32_MAX;

		all += not_stayed(o, o->marks[0] + (((span - ns) * at) >> 32), ns);
	}
	return all / TRIES;
}

int offcpu_estimate_wait(struct offcpu *o, struct offcpu_thread *t, uint64_t in_ns)
{
	struct offcpu_share s = {.stack = t->open.stack,
				 .waker_stack = t->open.waker_stack,
				 .waker = t->open.waker,
				 .wait = t->open.wait,
				 .count = 1};

	offcpu_divide(&t->open, t->since_ns, in_ns, &s.blocked_ns, &s.runnable_ns);
	uint64_t ns = s.blocked_ns + s.runnable_ns, mine = weight(o, ns);

	if (mine < ns) {
		s.runnable_ns = (uint64_t)((unsigned __int128)s.runnable_ns * mine / ns);
		s.blocked_ns = mine - s.runnable_ns;
	}
	s.is_short = in_ns - t->since_ns < o->min_ns;
	return offcpu_share(o, t, &s);
}

/* Ends exact times. From here on, polls give the times. */
static int leave_exact(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns)
{
	int r;

	/* The poll at the start of the state is still valid, because no event followed. */
	if (t->state == OFFCPU_UNSURE && t->polled && t->base_ns == t->since_ns)
		return 0;
	t->cut_ns = t->totals.runnable_ns;
	r = offcpu_end_exact(o, t, time_ns, true);
	t->cut_ns = t->totals.runnable_ns - t->cut_ns;
	t->now.waits = t->state == OFFCPU_OFF_CPU;
	t->now.wait = t->open;
	t->now.wait_ns = 0;
	t->polled = t->polled_again = false;
	t->ahead_ns = 0;
	t->base_ns = time_ns;
	return r;
}

static void leave_window(struct offcpu_thread *t, uint64_t time_ns)
{
	uint64_t ns = time_ns - t->since_ns;

	if (t->state == OFFCPU_RUNNING)
		t->now.on_ns += ns;
	t->now.waits = t->state == OFFCPU_OFF_CPU;
	t->now.wait = t->open;
	t->now.wait_ns = ns;
}

static int mark(struct offcpu *o, uint64_t time_ns)
{
	int r = 0;

	for (size_t i = 0; i < o->threads.len && !r; i++) {
		struct offcpu_thread *t = &o->threads.v[i];

		if (t->ended)
			continue;
		if (!o->estimating)
			t->now = (struct offcpu_window){0};
		if (!o->estimating)
			r = leave_exact(o, t, time_ns);
		else if (o->open)
			leave_window(t, time_ns);
		t->last = t->now;
		t->now = (struct offcpu_window){0};
		t->since_ns = time_ns;
		t->exact_run_ns = t->totals.running_ns;
		t->exact_runnable_ns = t->totals.runnable_ns;
	}
	if (o->estimating && !o->open)
		o->counts.closed_ns += time_ns - o->mark_ns;
	o->window_ns = o->estimating && o->open ? time_ns - o->open_ns : 0;
	if (o->open)
		o->closed_ns = time_ns;
	note_mark(o, time_ns);
	o->mark_ns = time_ns;
	return r;
}

int offcpu_close(struct offcpu *o, uint64_t time_ns)
{
	int r = o->whole ? offcpu_flush(o, o->mark_ns, true) : 0;

	if (!r)
		r = mark(o, time_ns);
	if (!o->estimating)
		o->epoch_ns = time_ns;
	o->estimating = true;
	o->open = false;
	return r;
}

int offcpu_open_again(struct offcpu *o, uint64_t time_ns)
{
	if (o->open)
		return 0;
	o->counts.closed_ns += time_ns - o->mark_ns;
	for (size_t i = 0; i < o->threads.len; i++) {
		struct offcpu_thread *t = &o->threads.v[i];

		t->state = OFFCPU_UNSURE;
		t->since_ns = time_ns;
		t->waking.time_ns = 0;
		t->now = (struct offcpu_window){0};
	}
	o->open = true;
	o->open_ns = time_ns;
	/* Ended threads are most of the memory after a storm of threads. */
	bool many_gone = o->gone.len > OFFCPU_GONE_MIN && o->gone.len > o->begun / 2;

	return time_ns - o->epoch_ns < OFFCPU_EPOCH_NS && !many_gone
		       ? 0
		       : offcpu_flush(o, time_ns, false);
}

int offcpu_whole(struct offcpu *o, uint64_t time_ns)
{
	int r;

	if (!o->estimating || !o->open)
		return 0;
	r = mark(o, time_ns);
	o->estimating = false;
	o->whole = true;
	return r;
}

/* Time off the CPU while events were off. */
static uint64_t off_unseen(const struct offcpu *o, const struct offcpu_thread *t, uint64_t len,
			   uint64_t off)
{
	const struct offcpu_window *w = &t->last;
	uint64_t seen_off = w->seen ? o->window_ns - w->on_ns
				    : (uint64_t)((double)off * (double)o->window_ns / (double)len);

	return off > seen_off ? off - seen_off : 0;
}

static int share_carry(struct offcpu *o, struct offcpu_thread *t, uint64_t ns, bool stayed)
{
	const struct offcpu_open *open = &t->carry;
	struct offcpu_share s = {.stack = open->stack,
				 .waker_stack = open->waker_stack,
				 .waker = open->waker,
				 .wait = open->wait,
				 .stayed = stayed,
				 .count = !stayed};

	/* The waking time is unknown; the sums of the scheduler correct the division. */
	*(open->wait == OFFCPU_RUNNABLE ? &s.runnable_ns : &s.blocked_ns) = ns;
	return ns ? offcpu_share(o, t, &s) : 0;
}

int offcpu_end_carry(struct offcpu *o, struct offcpu_thread *t)
{
	t->carried = false;
	return t->carry_sample ? share_carry(o, t, weight(o, t->carry_ns), false) : 0;
}

int offcpu_late_in(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns)
{
	if (!t->carried || t->stay_ns)
		return 0;
	t->carry_ns += time_ns - o->mark_ns;
	return offcpu_end_carry(o, t);
}

/* Time after base_ns that the carried wait lasts, at least. */
static uint64_t followed(const struct offcpu_thread *t)
{
	return offcpu_subtract(t->followed_ns, t->base_ns);
}

/*
 * Estimates how much of the time from from_ns to to_ns, two polls, a wait that ended in it lasted.
 * The intervals between polls grow with the distance from the window, whose scale is random: the
 * logarithm of from_ns - closed_ns is evenly distributed. Let x and y be the distances of the two
 * polls. If a wait ends L after the window, x y ln(y / x) / (y - x) has the mean L. The middle
 * would be up to 8 % too long.
 */
static double lasted(const struct offcpu *o, uint64_t from_ns, uint64_t to_ns)
{
	double x = (double)offcpu_subtract(from_ns, o->closed_ns), len = (double)(to_ns - from_ns);

	return x > 0 && len > 0 ? x * ((x + len) * log1p(len / x) / len - 1) / len : 0.5;
}

int offcpu_follow(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat,
		  uint64_t time_ns)
{
	if (!t->carried || !t->carry_sample || o->open || time_ns < t->base_ns)
		return 0;
	if (stat->count == t->base.count) {
		t->followed_ns = time_ns;
		return 0;
	}
	uint64_t known_ns = t->base_ns + followed(t), ns = time_ns - known_ns;

	t->carry_ns += followed(t) + (uint64_t)((double)ns * lasted(o, known_ns, time_ns));
	return offcpu_end_carry(o, t);
}

/* Adds the share of a finished wait whose stack came late. */
static int adopt_late(struct offcpu *o, struct offcpu_thread *t)
{
	for (size_t i = 0; i < OFFCPU_STAYS; i++) {
		struct offcpu_stay stay = t->stays[i];

		if (!stay.ns || stay.count != t->seen_count)
			continue;
		t->stays[i].ns = 0;
		return offcpu_share(o, t,
				    &(struct offcpu_share){.stack = t->seen_stack,
							   .waker_stack = OFFCPU_NO_STACK,
							   .stayed = true,
							   .blocked_ns = stay.ns});
	}
	return 0;
}

int offcpu_adopt(struct offcpu *o, struct offcpu_thread *t)
{
	uint64_t ns = t->stayed_ns;

	if (t->seen_stack == OFFCPU_NO_STACK)
		return 0;
	if (!t->stays_long || t->carried || t->seen_count != t->base.count)
		return adopt_late(o, t);
	t->carried = true;
	t->carry_sample = false;
	t->carry = (struct offcpu_open){.stack = t->seen_stack, .waker_stack = OFFCPU_NO_STACK};
	t->stayed_ns = 0;
	return share_carry(o, t, ns, true);
}

void offcpu_forget_stays(struct offcpu_thread *t)
{
	memset(t->stays, 0, sizeof(t->stays));
}

void offcpu_end_stay(struct offcpu_thread *t)
{
	if (!t->stays_long) {
		t->pending_ns[0] += t->stay_ns;
	} else if (t->stayed_ns) {
		t->stays[t->next_stay] = (struct offcpu_stay){t->base.count, t->stayed_ns};
		t->next_stay = (uint8_t)((t->next_stay + 1) % OFFCPU_STAYS);
	}
	t->stay_ns = t->stayed_ns = 0;
	t->stays_long = false;
}

static int stay(struct offcpu *o, struct offcpu_thread *t, uint64_t ns)
{
	bool is_long = t->stay_ns >= OFFCPU_STAY_NS;

	t->stay_ns += ns;
	t->stayed_ns += ns;
	if (t->carried)
		t->carry_ns += ns;
	if (!is_long)
		return 0;
	t->pending_ns[1] += t->stays_long ? ns : t->stay_ns;
	t->stays_long = true;
	if (!t->carried)
		return offcpu_adopt(o, t);
	ns = t->stayed_ns;
	t->stayed_ns = 0;
	return share_carry(o, t, ns, true);
}

static int divide_gap(struct offcpu *o, struct offcpu_thread *t, uint64_t len, uint64_t off,
		      uint64_t count)
{
	const struct offcpu_window *w = &t->last;
	uint64_t unseen = off_unseen(o, t, len, off), outside = count > w->ins ? count - w->ins : 0;

	if (!w->seen && !count && (off == len || t->carried))
		return stay(o, t, off);
	offcpu_end_stay(t);
	t->pending_ns[0] += off;
	if (!t->carried)
		return 0;
	if (!outside && w->began_waiting) {
		t->carry_ns += unseen + w->first_in_ns;
		if (w->woken.time_ns && !t->carry.woken_ns) {
			t->carry.waker = w->woken.by;
			t->carry.waker_stack = w->woken.stack;
		}
	} else {
		uint64_t known = followed(t) < unseen ? followed(t) : unseen;
		double part = outside > 1 ? 1.0 / ((double)outside + 1)
					  : lasted(o, t->base_ns + followed(t), o->mark_ns);

		t->carry_ns += known + (uint64_t)((double)(unseen - known) * part);
	}
	return offcpu_end_carry(o, t);
}

/* Adds the runnable time since the last poll. */
static void count_runnable(struct offcpu_thread *t, uint64_t ns)
{
	t->owed_ns += (int64_t)ns;
	if (t->owed_ns <= 0)
		return;
	t->pending_runnable_ns += (uint64_t)t->owed_ns;
	t->owed_ns = 0;
}

static void begin_carry(struct offcpu_thread *t)
{
	const struct offcpu_window *w = &t->last;

	t->carried = w->wait.stack != OFFCPU_NO_STACK;
	t->carry = w->wait;
	t->carry_ns = w->wait_ns;
	t->followed_ns = 0;
	t->carry_sample = w->wait_ns > 0;
}

int offcpu_estimate_poll(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat)
{
	uint64_t len = o->mark_ns > t->base_ns ? o->mark_ns - t->base_ns : 0,
		 count = offcpu_subtract(stat->count, t->base.count);
	uint64_t run = offcpu_subtract(stat->run_ns, t->base.run_ns) + t->ahead_ns;
	int r = 0;

	if (!len && t->polled)
		return 0; /* a second poll, or a new thread */
	if (t->polled) {
		t->ahead_ns = run > len ? run - len : 0;
		run -= t->ahead_ns;
		t->totals.running_ns += run;
		count_runnable(t, offcpu_subtract(stat->wait_ns, t->base.wait_ns));
		r = divide_gap(o, t, len, len - run, count);
	} else {
		offcpu_add_unwatched(t, len); /* the thread was created while events were off */
	}
	if (t->last.waits)
		begin_carry(t);
	t->polled = true;
	t->base = *stat;
	t->base_ns += len;
	return r;
}
