/*
 * Estimates while throttled. Between two polls lie a time without events and a window with events.
 * Polls give the exact time off the CPU; the window shows a sample of the waits.
 *
 * - Each wait that begins in a window is a sample, at its whole length. All waits have the same
 *   chance to be seen, whatever their length. The part after the window is a share of the time off
 *   the CPU there. The scheduler also counts switches, so the number of waits is known.
 * - A thread without a switch between two polls stayed in one wait. This time is a stratum of its
 *   own: it is exact, and long waits are not mistaken for short ones. Its stacks may be read from
 *   outside and may come after the wait, so the time is kept for a while under the scheduler's
 * count. The two ends of such a wait belong to the other stratum. Each is as long as the distance
 * of polls on average, so a sampled wait counts for no more than that.
 * - Waits that had begun before the window are left out. Their stack is unknown, and long ones
 * would be seen too often.
 */
#include "sampler/offcpu/offcpu_impl.h"

#include <string.h>

#define CYCLE_SMOOTH 0.05 /* weight of a new cycle in the average */

int offcpu_estimate_wait(struct offcpu *o, struct offcpu_thread *t, uint64_t in_ns)
{
	struct offcpu_share s = {.stack = t->open.stack,
				 .waker_stack = t->open.waker_stack,
				 .waker = t->open.waker,
				 .wait = t->open.wait,
				 .count = 1};

	offcpu_divide(&t->open, t->since_ns, in_ns, &s.blocked_ns, &s.runnable_ns);
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
	if (o->estimating)
		o->cycle_ns += (o->cycle_ns > 0 ? CYCLE_SMOOTH : 1) *
			       ((double)(time_ns - o->mark_ns) - o->cycle_ns);
	o->window_ns = o->estimating && o->open ? time_ns - o->open_ns : 0;
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
	return time_ns - o->epoch_ns < OFFCPU_EPOCH_NS ? 0 : offcpu_flush(o, time_ns, false);
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
	uint64_t cycle = (uint64_t)o->cycle_ns;

	t->carried = false;
	return t->carry_sample ? share_carry(o, t, t->carry_ns < cycle ? t->carry_ns : cycle, false)
			       : 0;
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
	if (ns < OFFCPU_STAY_NS || t->seen_count != t->base.count)
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
	t->stayed_ns = 0;
}

/* Ends a wait that lasted from poll to poll. */
static void end_stay(struct offcpu_thread *t)
{
	if (t->stayed_ns >= OFFCPU_STAY_NS) {
		t->stays[t->next_stay] = (struct offcpu_stay){t->base.count, t->stayed_ns};
		t->next_stay = (uint8_t)((t->next_stay + 1) % OFFCPU_STAYS);
	}
	t->stayed_ns = 0;
}

static int stay(struct offcpu *o, struct offcpu_thread *t, uint64_t ns)
{
	if (t->carried) {
		t->carry_ns += ns;
		return share_carry(o, t, ns, true);
	}
	t->stayed_ns += ns;
	return offcpu_adopt(o, t);
}

static int divide_gap(struct offcpu *o, struct offcpu_thread *t, uint64_t len, uint64_t off,
		      uint64_t count)
{
	const struct offcpu_window *w = &t->last;
	uint64_t unseen = off_unseen(o, t, len, off), outside = count > w->ins ? count - w->ins : 0;
	bool stayed = !w->seen && !count;

	t->pending_ns[stayed] += off;
	if (stayed)
		return stay(o, t, off);
	end_stay(t);
	if (!t->carried)
		return 0;
	if (!outside && w->began_waiting) {
		t->carry_ns += unseen + w->first_in_ns;
		if (w->woken.time_ns && !t->carry.woken_ns) {
			t->carry.waker = w->woken.by;
			t->carry.waker_stack = w->woken.stack;
		}
	} else {
		t->carry_ns += unseen / (outside + 1);
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
