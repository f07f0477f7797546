/* States of threads: what each switch, waking, poll and loss changes. */
#include "sampler/offcpu/offcpu_impl.h"

#include <errno.h>
#include <string.h>

/* sched_waking may precede the switch out a little, because the waker then waits for the sleeper to
 * leave its CPU. */
#define OFFCPU_EARLY_NS 50000
/* Time after which counters include the last run, at 100 ticks per second */
#define OFFCPU_TICK_NS UINT64_C(20000000)

void offcpu_divide(const struct offcpu_open *open, uint64_t out_ns, uint64_t in_ns,
		   uint64_t *ret_blocked, uint64_t *ret_runnable)
{
	uint64_t ready = open->wait == OFFCPU_RUNNABLE ? out_ns
			 : open->woken_ns              ? open->woken_ns
						       : in_ns;

	if (ready < out_ns)
		ready = out_ns;
	if (ready > in_ns)
		ready = in_ns;
	*ret_blocked = ready - out_ns;
	*ret_runnable = in_ns - ready;
}

int offcpu_emit(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_interval *interval)
{
	uint64_t ns = interval->blocked_ns + interval->runnable_ns;

	t->totals.blocked_ns += interval->blocked_ns;
	t->totals.runnable_ns += interval->runnable_ns;
	if (interval->stack == OFFCPU_NO_STACK)
		t->totals.no_stack_ns += ns;
	if (interval->estimated) {
		t->totals.estimated_ns += ns;
		o->counts.estimates++;
	} else if (ns < o->min_ns && !interval->cut_begin && !interval->cut_end) {
		t->totals.short_ns += ns;
		t->totals.short_count++;
		return 0;
	} else {
		o->counts.intervals++;
	}
	return o->listener.interval ? o->listener.interval(o->listener.ctx, interval) : 0;
}

/* Hands out the open wait, or the rest of it. */
static int emit_open(struct offcpu *o, struct offcpu_thread *t, uint64_t in_ns, bool cut_end)
{
	struct offcpu_interval i = {
		.tid = t->tid,
		.waker = t->open.waker,
		.out_ns = t->since_ns,
		.in_ns = in_ns,
		.woken_ns = t->open.woken_ns,
		.count = 1,
		.stack = t->open.stack,
		.waker_stack = t->open.waker_stack,
		.wait = t->open.wait,
		.cut_begin = t->open.cut_begin || t->since_ns != t->open.out_ns,
		.cut_end = cut_end,
	};

	offcpu_divide(&t->open, i.out_ns, i.in_ns, &i.blocked_ns, &i.runnable_ns);
	/* The scheduler counts a wait when it ends. */
	return o->polled && t->settles && !cut_end ? offcpu_hold(o, t, &i) : offcpu_emit(o, t, &i);
}

static int place_of(struct offcpu *o, uint32_t *ret_index)
{
	if (o->free.len) {
		*ret_index = o->free.v[--o->free.len];
		return 0;
	}
	int r = vec_push(&o->threads, ((struct offcpu_thread){0}));

	/* Each thread has room in the list. */
	if (!r)
		r = vec_reserve(&o->trusted, o->threads.len - o->trusted.len);
	if (!r)
		*ret_index = (uint32_t)o->threads.len - 1;
	return r;
}

static void doubt(struct offcpu *o, struct offcpu_thread *t, uint64_t from_ns)
{
	o->counts.doubtful += !t->doubt_ns;
	t->doubt_ns = from_ns;
}

static void list_trusted(struct offcpu *o, struct offcpu_thread *t)
{
	if (!t->is_listed)
		o->trusted.v[o->trusted.len++] = (uint32_t)(t - o->threads.v);
	t->is_listed = true;
}

static void trust(struct offcpu *o, struct offcpu_thread *t)
{
	list_trusted(o, t);
	o->counts.doubtful -= t->doubt_ns != 0;
	t->doubt_ns = 0;
}

/* Marks a new state as doubtful if events may be missing. */
static void doubt_new_state(struct offcpu *o, struct offcpu_thread *t)
{
	if (t->since_ns < o->lost_until_ns && !o->estimating)
		doubt(o, t, t->since_ns);
}

int offcpu_begin_thread(struct offcpu *o, const struct offcpu_event *e)
{
	const uint32_t *known = hashmap_get(&o->tids, (uint32_t)e->tid);
	uint32_t index;
	int r;

	if (known && !o->threads.v[*known].ended) {
		o->begun--;
		return 0;
	}
	r = place_of(o, &index);
	if (!r)
		r = hashmap_put(&o->tids, (uint32_t)e->tid, index);
	if (r)
		return r;
	struct offcpu_thread *t = &o->threads.v[index];

	*t = (struct offcpu_thread){.tid = e->tid,
				    .since_ns = e->time_ns,
				    .base_ns = e->time_ns,
				    .is_listed = t->is_listed,
				    .seen_stack = OFFCPU_NO_STACK};
	list_trusted(o, t);
	t->totals.begin_ns = e->time_ns;
	doubt_new_state(o, t);
	if (e->kind != OFFCPU_CREATED)
		return 0;
	t->polled = t->counted = true; /* its counters are zero */
	t->settles = !o->estimating;
	t->state = OFFCPU_OFF_CPU;
	t->open = (struct offcpu_open){.out_ns = e->time_ns,
				       .stack = OFFCPU_NO_STACK,
				       .waker_stack = OFFCPU_NO_STACK,
				       .wait = OFFCPU_RUNNABLE};
	return 0;
}

int offcpu_release(struct offcpu *o, uint32_t thread)
{
	struct offcpu_thread *t = &o->threads.v[thread];
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)t->tid);
	int r = offcpu_unhold(o, t);

	/* A new thread may have the id. */
	if (index && *index == thread)
		hashmap_remove(&o->tids, (uint32_t)t->tid);
	if (!r && o->listener.thread)
		r = o->listener.thread(o->listener.ctx, t->tid, &t->totals);
	t->ended = true;
	o->begun--;
	return r ? r : vec_push(&o->free, thread);
}

static void ran(struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns)
{
	if (o->estimating)
		t->now.on_ns += until_ns - t->since_ns;
	else
		t->totals.running_ns += until_ns - t->since_ns;
}

static int add_unknown(const struct offcpu *o, struct offcpu_thread *t, uint64_t from_ns,
		       uint64_t to_ns)
{
	t->totals.unknown_ns += to_ns - from_ns;
	return o->listener.unknown && from_ns < to_ns
		       ? o->listener.unknown(o->listener.ctx, t->tid, from_ns, to_ns)
		       : 0;
}

/* Adds unknown time between two switches of the same kind. */
static int missed(const struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns)
{
	return o->estimating ? 0 : add_unknown(o, t, t->since_ns, until_ns);
}

/* The switch in is missing. A woken thread gets a CPU soon; otherwise the time is unknown. */
static int missed_in(struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns)
{
	uint64_t woken_ns = t->open.woken_ns;
	int r;

	o->counts.no_in++;
	if (o->estimating || !woken_ns)
		return missed(o, t, until_ns);
	r = emit_open(o, t, woken_ns, false);
	t->since_ns = woken_ns;
	ran(o, t, until_ns);
	return r;
}

int offcpu_switch_out(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	int r = 0;

	if (t->state == OFFCPU_OFF_CPU)
		r = missed_in(o, t, e->time_ns);
	else
		ran(o, t, e->time_ns);
	t->now.seen = true;
	t->state = OFFCPU_OFF_CPU;
	t->since_ns = e->time_ns;
	t->open = (struct offcpu_open){
		.out_ns = e->time_ns,
		.stack = e->stack,
		.waker_stack = OFFCPU_NO_STACK,
		.wait = e->flags & OFFCPU_PREEMPTED ? OFFCPU_RUNNABLE : OFFCPU_BLOCKED,
	};
	if (t->waking.time_ns && e->time_ns - t->waking.time_ns <= OFFCPU_EARLY_NS &&
	    t->open.wait == OFFCPU_BLOCKED) {
		t->open.woken_ns = e->time_ns;
		t->open.waker_stack = t->waking.stack;
		t->open.waker = t->waking.by;
	}
	t->waking.time_ns = 0;
	doubt_new_state(o, t);
	return r;
}

/* Stack of the wait since the first poll, if known. */
static uint32_t first_stack(const struct offcpu_thread *t)
{
	return t->polled && t->since_ns == t->base_ns && t->seen_count == t->base.count
		       ? t->seen_stack
		       : OFFCPU_NO_STACK;
}

/* Opens a wait whose begin was not recorded. */
static void unseen_wait(struct offcpu_thread *t)
{
	t->open = (struct offcpu_open){.out_ns = t->since_ns,
				       .woken_ns = t->waking.time_ns,
				       .stack = first_stack(t),
				       .waker_stack = t->waking.time_ns ? t->waking.stack
									: OFFCPU_NO_STACK,
				       .waker = t->waking.time_ns ? t->waking.by : 0,
				       .cut_begin = true};
}

int offcpu_switch_in(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	int r = 0;

	if (t->state == OFFCPU_RUNNING && t->since_ns == e->time_ns)
		return 0; /* the same switch, from two events */
	if (t->state == OFFCPU_RUNNING) {
		o->counts.no_out++;
		r = missed(o, t, e->time_ns);
	} else if (o->estimating && t->state == OFFCPU_UNSURE) {
		t->now.began_waiting = !t->now.seen;
		t->now.first_in_ns = e->time_ns - o->open_ns;
		t->now.woken = t->waking;
	} else if (o->estimating) {
		r = offcpu_estimate_wait(o, t, e->time_ns);
	} else {
		if (t->state == OFFCPU_UNSURE)
			unseen_wait(t);
		r = emit_open(o, t, e->time_ns, false);
	}
	t->now.seen = true;
	t->now.ins++;
	t->state = OFFCPU_RUNNING;
	t->since_ns = e->time_ns;
	t->waking.time_ns = 0;
	doubt_new_state(o, t);
	return r;
}

int offcpu_wake(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	o->wakings = true;
	if (t->state != OFFCPU_OFF_CPU) {
		t->waking = (struct offcpu_waking){e->time_ns, e->stack, e->by};
	} else if (!t->open.woken_ns && t->open.wait == OFFCPU_BLOCKED) {
		t->open.woken_ns = e->time_ns;
		t->open.waker_stack = e->stack;
		t->open.waker = e->by;
	}
	return 0;
}

/* Accounts for the exact time up to time_ns. */
int offcpu_end_exact(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns, bool cut)
{
	switch (t->state) {
	case OFFCPU_RUNNING:
		t->totals.running_ns += time_ns - t->since_ns;
		return 0;
	case OFFCPU_OFF_CPU:
		return emit_open(o, t, time_ns, cut);
	default:
		return add_unknown(o, t, t->since_ns, time_ns);
	}
}

int offcpu_end_thread(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	uint32_t index = (uint32_t)(t - o->threads.v);
	int r = 0;

	t->totals.end_ns = e->time_ns;
	if (o->estimating) {
		/* An ended thread cannot be polled. */
		offcpu_add_unwatched(t, e->time_ns - t->base_ns);
	} else {
		/* A thread runs at its end. */
		if (t->state == OFFCPU_UNSURE)
			t->state = OFFCPU_RUNNING;
		r = offcpu_end_exact(o, t, e->time_ns, false);
		if (!r && !o->whole)
			return offcpu_release(o, index);
		if (t->base_ns < o->mark_ns)
			offcpu_add_unwatched(t, o->mark_ns - t->base_ns);
	}
	t->ended = true;
	if (r)
		return r;
	/* Estimates need recorded waits. Threads without them are not kept until the next flush. */
	return t->is_shared || t->carried
		       ? vec_push(&o->gone, index)
		       : offcpu_finish_ended(o, index, o->estimating ? e->time_ns : o->mark_ns);
}

static void lost_in_window(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns)
{
	if (o->open && t->state == OFFCPU_RUNNING && time_ns > t->since_ns)
		t->now.on_ns += time_ns - t->since_ns;
	t->state = OFFCPU_UNSURE;
	t->since_ns = o->done_ns;
	t->waking.time_ns = 0;
}

/*
 * Marks all threads as doubtful, because their waits may have ended. Visits only those that are not
 * marked yet, because losses are many when threads are many. While switches are throttled, no
 * thread is marked, because the next poll shows each state.
 */
void offcpu_lost_events(struct offcpu *o, const struct offcpu_event *e)
{
	for (size_t i = 0; o->estimating && i < o->threads.len; i++)
		if (!o->threads.v[i].ended)
			lost_in_window(o, &o->threads.v[i], e->time_ns);
	while (!o->estimating && o->trusted.len) {
		struct offcpu_thread *t = &o->threads.v[o->trusted.v[--o->trusted.len]];

		t->is_listed = false;
		if (!t->ended && !t->doubt_ns)
			doubt(o, t, e->time_ns > t->since_ns ? e->time_ns : t->since_ns);
	}
	if (e->until_ns > o->lost_until_ns)
		o->lost_until_ns = e->until_ns;
}

/* Counts the doubtful time as unknown. */
int offcpu_give_up(struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns,
		   enum offcpu_state state)
{
	uint64_t from_ns = t->doubt_ns;
	int r;

	if (!from_ns)
		return 0;
	r = offcpu_end_exact(o, t, from_ns, true);
	if (!r)
		r = add_unknown(o, t, from_ns, until_ns);
	t->state = (uint8_t)state;
	t->since_ns = until_ns;
	t->waking.time_ns = 0;
	trust(o, t);
	return r;
}

int offcpu_give_up_all(struct offcpu *o, uint64_t until_ns)
{
	int r = 0;

	for (size_t i = 0; i < o->threads.len && !r && o->counts.doubtful; i++)
		if (!o->threads.v[i].ended)
			r = offcpu_give_up(o, &o->threads.v[i], until_ns, OFFCPU_UNSURE);
	return r;
}

/*
 * Whether the thread is still in its wait: it has not switched in since. If its state is unsure, it
 * must not have run either.
 */
static bool still_waits(const struct offcpu_thread *t, const struct schedstat *stat,
			uint64_t time_ns)
{
	bool did_not_run = t->polled && t->base.run_ns == stat->run_ns &&
			   time_ns - t->base_ns >= OFFCPU_TICK_NS;

	return t->counted && t->count == stat->count &&
	       (t->state == OFFCPU_OFF_CPU || (t->state == OFFCPU_UNSURE && did_not_run));
}

/*
 * Ends the doubt about a thread's state by a poll. Counts the time that stays unknown. If events
 * are lost repeatedly, each poll accounts for the time since the previous one.
 */
static int poll_doubtful(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat,
			 uint64_t time_ns)
{
	bool waits = still_waits(t, stat, time_ns),
	     too_soon = t->polled && t->base.count == stat->count && t->base.run_ns == stat->run_ns;
	int r = 0;

	if (waits && t->state == OFFCPU_UNSURE) {
		unseen_wait(t);
		t->state = OFFCPU_OFF_CPU;
	}
	if (waits) {
		trust(o, t);
	} else {
		offcpu_end_stay(t);
		/* If the counters did not change, the next poll is compared with the first one. */
		t->base_ns = too_soon ? t->base_ns : time_ns;
		t->base = *stat;
		t->polled = t->counted = true;
		t->polled_again = false;
		t->count = stat->count;
		r = offcpu_give_up(o, t, time_ns, OFFCPU_UNSURE);
	}
	if (!r && o->listener.unseen && (!waits || t->open.stack == OFFCPU_NO_STACK))
		r = o->listener.unseen(o->listener.ctx, t->tid);
	if (time_ns < o->lost_until_ns)
		doubt(o, t, time_ns);
	return r;
}

/* Computes the counters at the mark, for a poll that arrives after the switch to WHOLE. */
static struct schedstat at_mark(const struct offcpu *o, const struct offcpu_thread *t,
				const struct schedstat *stat)
{
	uint64_t since = o->done_ns - t->since_ns, run = t->totals.running_ns - t->exact_run_ns;

	if (t->state == OFFCPU_RUNNING)
		run += since;
	return (struct schedstat){
		.run_ns = offcpu_subtract(stat->run_ns, run),
		.wait_ns = offcpu_subtract(stat->wait_ns,
					   t->totals.runnable_ns - t->exact_runnable_ns),
		.count = offcpu_subtract(stat->count, t->now.ins)};
}

/*
 * Applies a poll. While all switches are recorded, keeps a thread's first and last poll only. They
 * count if the thread has no events.
 */
int offcpu_apply_poll(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat,
		      uint64_t time_ns)
{
	bool polled_since_mark = t->counted && t->base_ns >= o->mark_ns;
	int r = offcpu_settle(o, t, stat);

	if (r)
		return r;
	if (o->estimating || (o->whole && !(t->doubt_ns && polled_since_mark))) {
		const struct schedstat then = o->whole ? at_mark(o, t, stat) : *stat;

		/* After WHOLE the switch count is exact, unless events were lost. */
		t->counted = o->whole && !t->doubt_ns;
		t->count = stat->count;
		return offcpu_estimate_poll(o, t, &then);
	}
	if (t->doubt_ns)
		return poll_doubtful(o, t, stat, time_ns);
	/* Later, recorded switches count: they are in the order of polls. */
	if (!t->counted)
		t->count = stat->count;
	t->counted = true;
	t->polled_again = t->polled;
	if (t->polled)
		t->latest = *stat;
	else
		t->base = *stat;
	t->polled = true;
	return 0;
}

/* Accounts for a thread without a recorded switch, by its first and last poll. */
int offcpu_end_unsure(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *last,
		      uint64_t end_ns)
{
	uint64_t ns = end_ns - t->since_ns, run = offcpu_subtract(last->run_ns, t->base.run_ns),
		 wait = offcpu_subtract(last->wait_ns, t->base.wait_ns);

	/* The thread always ran or never ran. Counters may be a tick old. */
	if (last->count == t->base.count)
		run = run > ns / 2 ? ns : 0;
	if (run > ns)
		run = ns;
	if (wait > ns - run)
		wait = ns - run;
	t->totals.running_ns += run;
	if (run == ns)
		return 0;
	return offcpu_emit(o, t,
			   &(struct offcpu_interval){.tid = t->tid,
						     .out_ns = t->since_ns,
						     .in_ns = end_ns,
						     .blocked_ns = ns - run - wait,
						     .runnable_ns = wait,
						     .stack = last->count == t->base.count
								      ? first_stack(t)
								      : OFFCPU_NO_STACK,
						     .waker_stack = OFFCPU_NO_STACK,
						     .cut_begin = true,
						     .cut_end = true});
}
