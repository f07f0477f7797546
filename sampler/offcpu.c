/* The order of events, and the states of threads while events are on. */
#include "sampler/offcpu_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* sched_waking comes before the waker waits for the sleeper to be off its CPU, so it may be told a moment before the switch out. */
#define OFFCPU_EARLY_NS 50000
#define OFFCPU_TICK_NS UINT64_C(20000000) /* by then what a thread ran was told, at 100 ticks a second too */
#define OFFCPU_LOOKS_NS UINT64_C(2000000000) /* by then all threads were looked at */

int offcpu_new(uint64_t begin_ns, uint64_t min_ns, const struct offcpu_listener *listener, struct offcpu **ret_offcpu)
{
	struct offcpu *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->listener = *listener;
	o->begin_ns = o->done_ns = begin_ns;
	o->min_ns = min_ns;
	o->open = true;
	*ret_offcpu = o;
	return 0;
}

void offcpu_free(struct offcpu *o)
{
	if (!o)
		return;
	vec_free(&o->queue);
	hashmap_free(&o->tids);
	vec_free(&o->threads);
	vec_free(&o->free);
	vec_free(&o->gone);
	vec_free(&o->shares);
	hashmap_free(&o->share_of);
	free(o);
}

const struct offcpu_counts *offcpu_counts(const struct offcpu *o)
{
	return &o->counts;
}

uint64_t offcpu_done(const struct offcpu *o)
{
	return o->done_ns;
}

static bool is_of_a_state(uint8_t kind)
{
	return kind == OFFCPU_OUT || kind == OFFCPU_IN || kind == OFFCPU_WAKING || kind == OFFCPU_LOOK;
}

static int enqueue(struct offcpu *o, const struct offcpu_event *event, const struct schedstat *look)
{
	struct offcpu_queued q = {.event = *event, .order = o->order++};

	if (event->time_ns > o->newest_ns)
		o->newest_ns = event->time_ns;
	if (o->queue.len >= OFFCPU_QUEUE_MAX && is_of_a_state(event->kind)) {
		o->counts.overflow++;
		if (!o->over_until_ns || event->time_ns < o->over_from_ns)
			o->over_from_ns = event->time_ns;
		if (event->time_ns > o->over_until_ns)
			o->over_until_ns = event->time_ns;
		return 0;
	}
	if (look)
		q.look = *look;
	return vec_push(&o->queue, q);
}

/* What had no room is as lost as what the rings had no room for. */
static int add_overflow(struct offcpu *o)
{
	const struct offcpu_event lost = {.time_ns = o->over_from_ns, .until_ns = o->over_until_ns, .kind = OFFCPU_LOST};
	int r = o->over_until_ns ? enqueue(o, &lost, NULL) : 0;

	o->over_until_ns = 0;
	return r;
}

int offcpu_add(struct offcpu *o, const struct offcpu_event *event)
{
	return enqueue(o, event, NULL);
}

int offcpu_look(struct offcpu *o, pid_t tid, uint64_t time_ns, const struct schedstat *stat)
{
	return enqueue(o, &(struct offcpu_event){.time_ns = time_ns, .tid = tid, .kind = OFFCPU_LOOK}, stat);
}

int offcpu_seen(struct offcpu *o, pid_t tid, uint64_t count, uint32_t stack)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);
	struct offcpu_thread *t = index && *index != UINT32_MAX ? &o->threads.v[*index] : NULL;

	if (!t || t->ended)
		return 0;
	t->seen_stack = stack;
	t->seen_count = count;
	/* The wait that it was found in behind a loss. */
	if (t->state == OFFCPU_WAITING && t->open.cut_begin && t->open.stack == OFFCPU_NO_STACK && t->counted && t->count == count)
		t->open.stack = stack;
	return offcpu_adopt(o, t);
}

bool offcpu_wants(const struct offcpu *o, pid_t tid, uint64_t count)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);
	const struct offcpu_thread *t = index && *index != UINT32_MAX ? &o->threads.v[*index] : NULL;

	if (!t || t->ended || (t->seen_stack != OFFCPU_NO_STACK && t->seen_count == count))
		return false;
	return !t->carried || t->base.count != count;
}

void offcpu_divide(const struct offcpu_open *open, uint64_t out_ns, uint64_t in_ns, uint64_t *ret_blocked, uint64_t *ret_runnable)
{
	uint64_t ready = open->wait == OFFCPU_RUNNABLE ? out_ns : open->woken_ns ? open->woken_ns : in_ns;

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

/* The wait that it is in, or that part of it which is not accounted for yet. */
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
	return offcpu_emit(o, t, &i);
}

static struct offcpu_thread *thread_of(struct offcpu *o, pid_t tid)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);

	if (!index || *index == UINT32_MAX || o->threads.v[*index].ended) {
		o->counts.others++;
		return NULL;
	}
	return &o->threads.v[*index];
}

static int place_of(struct offcpu *o, uint32_t *ret_index)
{
	if (o->free.len) {
		*ret_index = o->free.v[--o->free.len];
		return 0;
	}
	if (o->threads.len == OFFCPU_THREADS_MAX)
		return -E2BIG;
	int r = vec_push(&o->threads, ((struct offcpu_thread){0}));

	if (!r)
		*ret_index = (uint32_t)o->threads.len - 1;
	return r;
}

static void doubt(struct offcpu *o, struct offcpu_thread *t, uint64_t from_ns)
{
	o->counts.doubtful += !t->doubt_ns;
	t->doubt_ns = from_ns;
}

static void trust(struct offcpu *o, struct offcpu_thread *t)
{
	o->counts.doubtful -= t->doubt_ns != 0;
	t->doubt_ns = 0;
}

/* It begins while events may be missing. */
static void doubt_new_state(struct offcpu *o, struct offcpu_thread *t)
{
	if (t->since_ns < o->lost_until_ns && !o->estimating)
		doubt(o, t, t->since_ns);
}

static int begin_thread(struct offcpu *o, const struct offcpu_event *e)
{
	const uint32_t *known = hashmap_get(&o->tids, (uint32_t)e->tid);
	uint32_t index;
	int r;

	if (known && *known != UINT32_MAX && !o->threads.v[*known].ended)
		return 0;
	r = place_of(o, &index);
	if (r == -E2BIG) {
		o->counts.overflow++;
		return 0;
	}
	if (!r)
		r = hashmap_put(&o->tids, (uint32_t)e->tid, index);
	if (r)
		return r;
	struct offcpu_thread *t = &o->threads.v[index];

	*t = (struct offcpu_thread){
		.tid = e->tid, .since_ns = e->time_ns, .base_ns = e->time_ns, .seen_stack = OFFCPU_NO_STACK};
	t->totals.begin_ns = e->time_ns;
	doubt_new_state(o, t);
	if (e->kind != OFFCPU_CREATED)
		return 0;
	t->looked = t->counted = true; /* it has run and waited for nothing yet */
	t->state = OFFCPU_WAITING;
	t->open = (struct offcpu_open){.out_ns = e->time_ns,
				       .stack = OFFCPU_NO_STACK,
				       .waker_stack = OFFCPU_NO_STACK,
				       .wait = OFFCPU_RUNNABLE};
	return 0;
}

int offcpu_release(struct offcpu *o, uint32_t thread)
{
	struct offcpu_thread *t = &o->threads.v[thread];
	uint32_t *index = hashmap_get(&o->tids, (uint32_t)t->tid);
	int r = 0;

	if (index && *index == thread)
		*index = UINT32_MAX;
	if (o->listener.thread)
		r = o->listener.thread(o->listener.ctx, t->tid, &t->totals);
	t->ended = true;
	return r ? r : vec_push(&o->free, thread);
}

static void ran(struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns)
{
	if (o->estimating)
		t->now.on_ns += until_ns - t->since_ns;
	else
		t->totals.running_ns += until_ns - t->since_ns;
}

/* What it was between two switches of the same kind. */
static void missed(const struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns)
{
	if (!o->estimating)
		t->totals.unknown_ns += until_ns - t->since_ns;
}

/* The switch in between is missing. Who was woken is on a CPU soon; who was not, nobody knows of. */
static int missed_in(struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns)
{
	uint64_t woken_ns = t->open.woken_ns;
	int r;

	o->counts.no_in++;
	if (o->estimating || !woken_ns) {
		missed(o, t, until_ns);
		return 0;
	}
	r = emit_open(o, t, woken_ns, false);
	t->since_ns = woken_ns;
	ran(o, t, until_ns);
	return r;
}

static int switch_out(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	int r = 0;

	if (t->state == OFFCPU_WAITING)
		r = missed_in(o, t, e->time_ns);
	else
		ran(o, t, e->time_ns);
	t->now.seen = true;
	t->state = OFFCPU_WAITING;
	t->since_ns = e->time_ns;
	t->open = (struct offcpu_open){
		.out_ns = e->time_ns,
		.stack = e->stack,
		.waker_stack = OFFCPU_NO_STACK,
		.wait = e->flags & OFFCPU_PREEMPTED ? OFFCPU_RUNNABLE : OFFCPU_BLOCKED,
	};
	if (t->waking.time_ns && e->time_ns - t->waking.time_ns <= OFFCPU_EARLY_NS && t->open.wait == OFFCPU_BLOCKED) {
		t->open.woken_ns = e->time_ns;
		t->open.waker_stack = t->waking.stack;
		t->open.waker = t->waking.by;
	}
	t->waking.time_ns = 0;
	doubt_new_state(o, t);
	return r;
}

/* Of the wait that it has been in since the first look at it. */
static uint32_t first_stack(const struct offcpu_thread *t)
{
	return t->looked && t->since_ns == t->base_ns && t->seen_count == t->base.count ? t->seen_stack : OFFCPU_NO_STACK;
}

/* It was so since the recording began, or since nobody knows. */
static void unseen_wait(struct offcpu_thread *t)
{
	t->open = (struct offcpu_open){.out_ns = t->since_ns,
				       .woken_ns = t->waking.time_ns,
				       .stack = first_stack(t),
				       .waker_stack = t->waking.time_ns ? t->waking.stack : OFFCPU_NO_STACK,
				       .waker = t->waking.time_ns ? t->waking.by : 0,
				       .cut_begin = true};
}

static int switch_in(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	int r = 0;

	if (t->state == OFFCPU_RUNNING && t->since_ns == e->time_ns)
		return 0; /* the same switch, told by two events */
	if (t->state == OFFCPU_RUNNING) {
		o->counts.no_out++;
		missed(o, t, e->time_ns);
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

static int waking(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	o->wakings = true;
	if (t->state != OFFCPU_WAITING) {
		t->waking = (struct offcpu_waking){e->time_ns, e->stack, e->by};
	} else if (!t->open.woken_ns && t->open.wait == OFFCPU_BLOCKED) {
		t->open.woken_ns = e->time_ns;
		t->open.waker_stack = e->stack;
		t->open.waker = e->by;
	}
	return 0;
}

/* Accounts for all up to its end. */
int offcpu_end_exact(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns, bool cut)
{
	switch (t->state) {
	case OFFCPU_RUNNING:
		t->totals.running_ns += time_ns - t->since_ns;
		return 0;
	case OFFCPU_WAITING:
		return emit_open(o, t, time_ns, cut);
	default:
		t->totals.unknown_ns += time_ns - t->since_ns;
		return 0;
	}
}

static int end_thread(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e)
{
	uint32_t index = (uint32_t)(t - o->threads.v);
	int r = 0;

	t->totals.end_ns = e->time_ns;
	if (o->estimating) {
		/* Nobody can look at it any more. */
		offcpu_unwatched(t, e->time_ns - t->base_ns);
	} else {
		/* It ends running, whatever it was before. */
		if (t->state == OFFCPU_UNSURE)
			t->state = OFFCPU_RUNNING;
		r = offcpu_end_exact(o, t, e->time_ns, false);
		if (!r && !o->whole)
			return offcpu_release(o, index);
		if (t->base_ns < o->mark_ns)
			offcpu_unwatched(t, o->mark_ns - t->base_ns);
	}
	t->ended = true;
	return r ? r : vec_push(&o->gone, index);
}

/* Waits that are open may have ended and begun again. While events are off at times looks tell all the same. */
static void lost(struct offcpu *o, const struct offcpu_event *e)
{
	for (size_t i = 0; i < o->threads.len; i++) {
		struct offcpu_thread *t = &o->threads.v[i];

		if (t->ended)
			continue;
		if (o->estimating) {
			if (o->open && t->state == OFFCPU_RUNNING && e->time_ns > t->since_ns)
				t->now.on_ns += e->time_ns - t->since_ns;
			t->state = OFFCPU_UNSURE;
			t->since_ns = o->done_ns;
			t->waking.time_ns = 0;
		} else if (!t->doubt_ns) {
			doubt(o, t, e->time_ns > t->since_ns ? e->time_ns : t->since_ns);
		}
	}
	if (e->until_ns > o->lost_until_ns)
		o->lost_until_ns = e->until_ns;
}

/* What it did from there on nobody knows. */
static int give_up(struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns, enum offcpu_state state)
{
	uint64_t from_ns = t->doubt_ns;
	int r;

	if (!from_ns)
		return 0;
	r = offcpu_end_exact(o, t, from_ns, true);
	t->totals.unknown_ns += until_ns - from_ns;
	t->state = (uint8_t)state;
	t->since_ns = until_ns;
	t->waking.time_ns = 0;
	trust(o, t);
	return r;
}

static int give_up_all(struct offcpu *o, uint64_t until_ns)
{
	int r = 0;

	for (size_t i = 0; i < o->threads.len && !r && o->counts.doubtful; i++)
		if (!o->threads.v[i].ended)
			r = give_up(o, &o->threads.v[i], until_ns, OFFCPU_UNSURE);
	return r;
}

/* Who waited, and has not come to a CPU since then, still waits. Of one whose state was never seen the time that it has run tells. */
static bool still_waits(const struct offcpu_thread *t, const struct schedstat *stat, uint64_t time_ns)
{
	bool did_not_run = t->looked && t->base.run_ns == stat->run_ns && time_ns - t->base_ns >= OFFCPU_TICK_NS;

	return t->counted && t->count == stat->count && (t->state == OFFCPU_WAITING || (t->state == OFFCPU_UNSURE && did_not_run));
}

/* What is not known by now never will be; from here on looks tell again. While events are missing time after time each look vouches for the
 * time before it. */
static int look_at_doubtful(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat, uint64_t time_ns)
{
	bool waits = still_waits(t, stat, time_ns), too_soon = t->looked && t->base.count == stat->count && t->base.run_ns == stat->run_ns;
	int r = 0;

	if (waits && t->state == OFFCPU_UNSURE) {
		unseen_wait(t);
		t->state = OFFCPU_WAITING;
	}
	if (waits) {
		trust(o, t);
	} else {
		/* What the kernel has told before still is all that it tells: the next look is compared with the first that found it so. */
		t->base_ns = too_soon ? t->base_ns : time_ns;
		t->base = *stat;
		t->looked = t->counted = true;
		t->looked_again = false;
		t->stayed_ns = 0;
		t->count = stat->count;
		r = give_up(o, t, time_ns, OFFCPU_UNSURE);
	}
	if (!r && o->listener.unseen && (!waits || t->open.stack == OFFCPU_NO_STACK))
		r = o->listener.unseen(o->listener.ctx, t->tid);
	if (time_ns < o->lost_until_ns)
		doubt(o, t, time_ns);
	return r;
}

/* Of a look that comes late after WHOLE: what was seen since then is accounted for. */
static struct schedstat at_mark(const struct offcpu *o, const struct offcpu_thread *t, const struct schedstat *stat)
{
	uint64_t since = o->done_ns - t->since_ns, run = t->totals.running_ns - t->exact_run_ns;

	if (t->state == OFFCPU_RUNNING)
		run += since;
	return (struct schedstat){.run_ns = offcpu_less(stat->run_ns, run),
				  .wait_ns = offcpu_less(stat->wait_ns, t->totals.runnable_ns - t->exact_runnable_ns),
				  .count = offcpu_less(stat->count, t->now.ins)};
}

/* In exact times the first look is kept: what nothing is seen of since then the last look tells. */
static int look(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat, uint64_t time_ns)
{
	bool looked_behind = t->counted && t->base_ns >= o->mark_ns;

	if (o->estimating || (o->whole && !(t->doubt_ns && looked_behind))) {
		const struct schedstat then = o->whole ? at_mark(o, t, stat) : *stat;

		/* Behind WHOLE it is as good as any, unless something is missing already. */
		t->counted = o->whole && !t->doubt_ns;
		t->count = stat->count;
		return offcpu_estimate_look(o, t, &then);
	}
	if (t->doubt_ns)
		return look_at_doubtful(o, t, stat, time_ns);
	t->counted = true;
	t->count = stat->count;
	t->looked_again = t->looked;
	if (t->looked)
		t->latest = *stat;
	else
		t->base = *stat;
	t->looked = true;
	return 0;
}

static int of_thread(struct offcpu *o, const struct offcpu_queued *q)
{
	const struct offcpu_event *e = &q->event;
	bool seen = e->kind == OFFCPU_OUT || e->kind == OFFCPU_IN || e->kind == OFFCPU_WAKING;
	int r = 0;

	if (seen && !o->open) {
		o->counts.outside++;
		return 0;
	}
	struct offcpu_thread *t = thread_of(o, e->tid);

	if (!t)
		return 0;
	t->count += e->kind == OFFCPU_IN && (t->state != OFFCPU_RUNNING || t->since_ns != e->time_ns);
	/* From its next event on it is known again: it runs up to an "out", and from an "in" on. */
	if (e->kind == OFFCPU_OUT || e->kind == OFFCPU_IN || e->kind == OFFCPU_END)
		r = give_up(o, t, e->time_ns, OFFCPU_RUNNING);
	if (r)
		return r;
	switch (e->kind) {
	case OFFCPU_OUT:
		return switch_out(o, t, e);
	case OFFCPU_IN:
		return switch_in(o, t, e);
	case OFFCPU_WAKING:
		return waking(o, t, e);
	case OFFCPU_END:
		return end_thread(o, t, e);
	default:
		return look(o, t, &q->look, o->done_ns);
	}
}

static int deal(struct offcpu *o, struct offcpu_queued *q)
{
	int r = 0;

	if (q->event.time_ns < o->done_ns) {
		/* States of threads go forward only. What the recording began with comes with times before it. */
		if ((q->event.kind > OFFCPU_END || o->done_ns != o->begin_ns) && q->event.kind != OFFCPU_LOST)
			o->counts.late++;
		if (q->event.kind == OFFCPU_OUT || q->event.kind == OFFCPU_IN || q->event.kind == OFFCPU_WAKING)
			return 0;
		if (q->event.kind != OFFCPU_LOST)
			q->event.time_ns = o->done_ns;
	}
	if (q->event.time_ns > o->done_ns)
		o->done_ns = q->event.time_ns;
	if (q->event.kind == OFFCPU_CLOSE || q->event.kind == OFFCPU_OPEN || q->event.kind == OFFCPU_WHOLE)
		r = give_up_all(o, o->done_ns);
	if (r)
		return r;
	switch (q->event.kind) {
	case OFFCPU_BEGIN:
	case OFFCPU_CREATED:
		return begin_thread(o, &q->event);
	case OFFCPU_CLOSE:
		return offcpu_close(o, q->event.time_ns);
	case OFFCPU_OPEN:
		return offcpu_open_again(o, q->event.time_ns);
	case OFFCPU_WHOLE:
		return offcpu_whole(o, q->event.time_ns);
	case OFFCPU_LOST:
		lost(o, &q->event);
		return 0;
	default:
		return of_thread(o, q);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct offcpu_queued *x = a, *y = b;

	if (x->event.time_ns != y->event.time_ns)
		return x->event.time_ns < y->event.time_ns ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static int deal_until(struct offcpu *o, uint64_t until_ns)
{
	int r = add_overflow(o);
	struct offcpu_queued *v = o->queue.v;
	size_t n = 0;

	if (o->queue.len)
		qsort(v, o->queue.len, sizeof(*v), by_time);
	while (!r && n < o->queue.len && v[n].event.time_ns <= until_ns)
		r = deal(o, &v[n++]);
	o->queue.len -= n;
	if (n && o->queue.len)
		memmove(v, v + n, o->queue.len * sizeof(*v));
	return r;
}

int offcpu_round(struct offcpu *o)
{
	int r = deal_until(o, o->horizon_ns);

	if (!r && o->whole && o->done_ns > o->mark_ns + OFFCPU_LOOKS_NS)
		r = offcpu_settle(o, o->mark_ns, true);
	o->horizon_ns = o->newest_ns;
	return r;
}

/* Of a thread of which no switch was seen the looks at both ends tell. */
static int end_unsure(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *last, uint64_t end_ns)
{
	uint64_t ns = end_ns - t->since_ns, run = offcpu_less(last->run_ns, t->base.run_ns), wait = offcpu_less(last->wait_ns, t->base.wait_ns);

	/* It never left its CPU, or never came to one. The kernel's last word may be a tick old. */
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
						     .stack = last->count == t->base.count ? first_stack(t) : OFFCPU_NO_STACK,
						     .waker_stack = OFFCPU_NO_STACK,
						     .cut_begin = true,
						     .cut_end = true});
}

static int finish_thread(struct offcpu *o, uint32_t index, uint64_t end_ns)
{
	struct offcpu_thread *t = &o->threads.v[index];
	int r = 0;

	t->totals.end_ns = end_ns;
	r = give_up(o, t, end_ns, OFFCPU_UNSURE);
	if (r)
		return r;
	if (!o->estimating && t->state == OFFCPU_UNSURE && t->looked_again && t->since_ns == t->base_ns)
		r = end_unsure(o, t, &t->latest, end_ns);
	else if (!o->estimating)
		r = offcpu_end_exact(o, t, end_ns, true);
	else
		offcpu_unwatched(t, end_ns - t->base_ns); /* of one that had its last look: none */
	return r ? r : offcpu_release(o, index);
}

static int last_look(struct offcpu *o, const struct offcpu_queued *q)
{
	struct offcpu_thread *t = q->event.kind == OFFCPU_LOOK ? thread_of(o, q->event.tid) : NULL;

	if (!t)
		return 0;
	return o->estimating ? offcpu_estimate_look(o, t, &q->look) : look(o, t, &q->look, q->event.time_ns);
}

static int last_looks(struct offcpu *o)
{
	int r = 0;

	for (size_t i = 0; i < o->queue.len && !r; i++)
		r = last_look(o, &o->queue.v[i]);
	return r;
}

int offcpu_finish(struct offcpu *o, uint64_t end_ns)
{
	int r = deal_until(o, end_ns - 1);

	if (end_ns < o->done_ns)
		end_ns = o->done_ns;
	o->done_ns = end_ns;
	/* They are of some the first behind WHOLE too. */
	if (!r && o->whole)
		r = last_looks(o);
	if (!r && o->whole)
		r = offcpu_settle(o, o->mark_ns, true);
	if (!r && o->estimating)
		r = offcpu_close(o, end_ns);
	if (!r)
		r = last_looks(o);
	o->queue.len = 0;
	if (!r && o->estimating)
		r = offcpu_settle(o, end_ns, true);
	for (size_t i = 0; i < o->threads.len && !r; i++)
		if (!o->threads.v[i].ended)
			r = finish_thread(o, (uint32_t)i, end_ns);
	return r;
}
