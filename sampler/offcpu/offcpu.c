/* Order of events: queue, rounds, and the end of a recording. */
#include "sampler/offcpu/offcpu_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL_POLLED_NS UINT64_C(2000000000) /* time after which all threads were polled */

int offcpu_new(uint64_t begin_ns, uint64_t min_ns, const struct offcpu_listener *listener,
	       struct offcpu **ret_offcpu)
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
	vec_free(&o->trusted);
	vec_free(&o->gone);
	vec_free(&o->shares);
	vec_free(&o->held);
	vec_free(&o->sizes);
	hashmap_free(&o->share_of);
	free(o);
}

const struct offcpu_counts *offcpu_counts(const struct offcpu *o)
{
	return &o->counts;
}

uint64_t offcpu_round_ns(const struct offcpu *o)
{
	return o->round_ns;
}

static bool is_of_a_state(uint8_t kind)
{
	return kind == OFFCPU_OUT || kind == OFFCPU_IN || kind == OFFCPU_WAKING ||
	       kind == OFFCPU_POLL || kind == OFFCPU_FOLLOW;
}

static int enqueue(struct offcpu *o, const struct offcpu_event *event, const struct schedstat *poll)
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
	if (poll)
		q.poll = *poll;
	return vec_push(&o->queue, q);
}

/* Reports dropped events as lost. */
static int add_overflow(struct offcpu *o)
{
	const struct offcpu_event lost = {
		.time_ns = o->over_from_ns, .until_ns = o->over_until_ns, .kind = OFFCPU_LOST};
	int r = o->over_until_ns ? enqueue(o, &lost, NULL) : 0;

	o->over_until_ns = 0;
	return r;
}

int offcpu_add(struct offcpu *o, const struct offcpu_event *event)
{
	int r = enqueue(o, event, NULL);

	o->begun += !r && (event->kind == OFFCPU_BEGIN || event->kind == OFFCPU_CREATED);
	return r;
}

size_t offcpu_threads(const struct offcpu *o)
{
	return o->begun;
}

int offcpu_add_poll(struct offcpu *o, pid_t tid, uint64_t time_ns, const struct schedstat *stat)
{
	o->polled = true;
	return enqueue(o,
		       &(struct offcpu_event){.time_ns = time_ns, .tid = tid, .kind = OFFCPU_POLL},
		       stat);
}

int offcpu_add_stack(struct offcpu *o, pid_t tid, uint64_t count, uint32_t stack)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);
	struct offcpu_thread *t = index ? &o->threads.v[*index] : NULL;

	if (!t || t->ended)
		return 0;
	t->seen_stack = stack;
	t->seen_count = count;
	/* The wait found after a loss. */
	if (t->state == OFFCPU_OFF_CPU && t->open.cut_begin && t->open.stack == OFFCPU_NO_STACK &&
	    t->counted && t->count == count)
		t->open.stack = stack;
	return offcpu_adopt(o, t);
}

bool offcpu_wants_stack(const struct offcpu *o, pid_t tid, uint64_t count)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);
	const struct offcpu_thread *t = index ? &o->threads.v[*index] : NULL;

	if (!t || t->ended || (t->seen_stack != OFFCPU_NO_STACK && t->seen_count == count))
		return false;
	return !t->carried || t->base.count != count;
}

int offcpu_add_follow(struct offcpu *o, pid_t tid, uint64_t time_ns, const struct schedstat *stat)
{
	return enqueue(
		o, &(struct offcpu_event){.time_ns = time_ns, .tid = tid, .kind = OFFCPU_FOLLOW},
		stat);
}

static struct offcpu_thread *thread_of(struct offcpu *o, pid_t tid)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);

	if (!index || o->threads.v[*index].ended) {
		o->counts.others++;
		return NULL;
	}
	return &o->threads.v[*index];
}

static int of_thread(struct offcpu *o, const struct offcpu_queued *q)
{
	const struct offcpu_event *e = &q->event;
	bool seen = e->kind == OFFCPU_OUT || e->kind == OFFCPU_IN || e->kind == OFFCPU_WAKING;
	int r = 0;

	if (seen && !o->open)
		o->counts.outside++;
	struct offcpu_thread *t = thread_of(o, e->tid);

	if (!t)
		return 0;
	if (seen && !o->open)
		return e->kind == OFFCPU_IN ? offcpu_late_in(o, t, e->time_ns) : 0;
	t->count +=
		e->kind == OFFCPU_IN && (t->state != OFFCPU_RUNNING || t->since_ns != e->time_ns);
	/* Its state is known from the next event: running before an OUT, and after an IN. */
	if (e->kind == OFFCPU_OUT || e->kind == OFFCPU_IN || e->kind == OFFCPU_END)
		r = offcpu_give_up(o, t, e->time_ns, OFFCPU_RUNNING);
	if (r)
		return r;
	switch (e->kind) {
	case OFFCPU_OUT:
		return offcpu_switch_out(o, t, e);
	case OFFCPU_IN:
		return offcpu_switch_in(o, t, e);
	case OFFCPU_WAKING:
		return offcpu_wake(o, t, e);
	case OFFCPU_END:
		return offcpu_end_thread(o, t, e);
	case OFFCPU_FOLLOW:
		return offcpu_follow(o, t, &q->poll, e->time_ns);
	default:
		return offcpu_apply_poll(o, t, &q->poll, o->done_ns);
	}
}

static int deal(struct offcpu *o, struct offcpu_queued *q)
{
	int r = 0;

	if (q->event.time_ns < o->done_ns) {
		/* States only go forward. The initial threads have earlier times. */
		if ((q->event.kind > OFFCPU_END || o->done_ns != o->begin_ns) &&
		    q->event.kind != OFFCPU_LOST)
			o->counts.late++;
		if (q->event.kind == OFFCPU_OUT || q->event.kind == OFFCPU_IN ||
		    q->event.kind == OFFCPU_WAKING)
			return 0;
		if (q->event.kind != OFFCPU_LOST)
			q->event.time_ns = o->done_ns;
	}
	if (q->event.time_ns > o->done_ns)
		o->done_ns = q->event.time_ns;
	if (q->event.kind == OFFCPU_CLOSE || q->event.kind == OFFCPU_OPEN ||
	    q->event.kind == OFFCPU_WHOLE)
		r = offcpu_give_up_all(o, o->done_ns);
	if (r)
		return r;
	switch (q->event.kind) {
	case OFFCPU_BEGIN:
	case OFFCPU_CREATED:
		return offcpu_begin_thread(o, &q->event);
	case OFFCPU_CLOSE:
		return offcpu_close(o, q->event.time_ns);
	case OFFCPU_OPEN:
		return offcpu_open_again(o, q->event.time_ns);
	case OFFCPU_WHOLE:
		return offcpu_whole(o, q->event.time_ns);
	case OFFCPU_LOST:
		offcpu_lost_events(o, &q->event);
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
	o->round_ns = o->done_ns;
	int r = deal_until(o, o->horizon_ns);

	if (!r && o->whole && o->done_ns > o->mark_ns + ALL_POLLED_NS)
		r = offcpu_flush(o, o->mark_ns, true);
	o->horizon_ns = o->newest_ns;
	return r;
}

static int finish_thread(struct offcpu *o, uint32_t index, uint64_t end_ns)
{
	struct offcpu_thread *t = &o->threads.v[index];
	int r = 0;

	t->totals.end_ns = end_ns;
	r = offcpu_give_up(o, t, end_ns, OFFCPU_UNSURE);
	if (r)
		return r;
	if (!o->estimating && t->state == OFFCPU_UNSURE && t->polled_again &&
	    t->since_ns == t->base_ns)
		r = offcpu_end_unsure(o, t, &t->latest, end_ns);
	else if (!o->estimating)
		r = offcpu_end_exact(o, t, end_ns, true);
	else
		offcpu_add_unwatched(t, end_ns - t->base_ns); /* 0 after the last poll */
	return r ? r : offcpu_release(o, index);
}

static int deal_last_poll(struct offcpu *o, const struct offcpu_queued *q)
{
	struct offcpu_thread *t = q->event.kind == OFFCPU_POLL ? thread_of(o, q->event.tid) : NULL;

	return t ? offcpu_apply_poll(o, t, &q->poll, q->event.time_ns) : 0;
}

static int deal_last_polls(struct offcpu *o)
{
	int r = 0;

	for (size_t i = 0; i < o->queue.len && !r; i++)
		r = deal_last_poll(o, &o->queue.v[i]);
	return r;
}

int offcpu_finish(struct offcpu *o, uint64_t end_ns)
{
	o->round_ns = o->done_ns;
	int r = deal_until(o, end_ns - 1);

	if (end_ns < o->done_ns)
		end_ns = o->done_ns;
	o->done_ns = end_ns;
	/* For some threads they are the first polls after WHOLE. */
	if (!r && o->whole)
		r = deal_last_polls(o);
	if (!r && o->whole)
		r = offcpu_flush(o, o->mark_ns, true);
	if (!r && o->estimating)
		r = offcpu_close(o, end_ns);
	if (!r)
		r = deal_last_polls(o);
	o->queue.len = 0;
	if (!r && o->estimating)
		r = offcpu_flush(o, end_ns, true);
	for (size_t i = 0; i < o->threads.len && !r; i++)
		if (!o->threads.v[i].ended)
			r = finish_thread(o, (uint32_t)i, end_ns);
	return r;
}
