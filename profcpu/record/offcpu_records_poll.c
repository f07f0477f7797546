/* Polls the scheduler's counters of threads. */
#include "profcpu/record/offcpu_records_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void record_offcpu_set_rate(struct record_offcpu *o, struct offcpu_task *task, double rate)
{
	o->rates -= task->rate;
	/* The counter may be a tick old, so the rate may seem higher. */
	task->rate = rate < NS_PER_S ? (uint64_t)rate : NS_PER_S;
	o->rates += task->rate;
}

/* Requests the stack of a thread that stays in one wait while events are off. The wait may be over
 * when this poll is processed. The interval between requests grows. */
static int request_stack(struct record_offcpu *o, struct offcpu_task *task, uint64_t count,
			 uint64_t time_ns)
{
	if (!o->throttling || !task->wait_ns || task->count != count) {
		task->count = count;
		task->wait_ns = o->throttling ? time_ns : 0;
		task->request_ns = OFFCPU_STAY_NS;
		return 0;
	}
	if (time_ns - task->wait_ns < task->request_ns || !o->writer.request ||
	    !offcpu_wants_stack(o->offcpu, task->tid, count))
		return 0;
	task->request_ns = REQUEST_BACKOFF * (time_ns - task->wait_ns);
	o->read_now = true;
	return o->writer.request(o->writer.ctx, task->pid, task->tid);
}

int record_offcpu_poll_one(struct record_offcpu *o, struct offcpu_task *task, uint64_t time_ns)
{
	struct schedstat stat;

	if (!o->stats || schedstat_read(o->stats, task->tid, &stat))
		return 0;
	if (task->polled_ns && time_ns > task->polled_ns)
		record_offcpu_set_rate(o, task,
				       (double)(stat.run_ns - task->run_ns) /
					       (double)(time_ns - task->polled_ns) * NS_PER_S);
	task->run_ns = stat.run_ns;
	task->polled_ns = time_ns;
	int r = request_stack(o, task, stat.count, time_ns);

	return r ? r : offcpu_add_poll(o->offcpu, task->tid, time_ns, &stat);
}

static bool lives(const struct record_offcpu *o, const struct offcpu_task *task)
{
	return record_offcpu_task(o, task->tid) == task && !task->ended;
}

/* Polls up to `most` threads, each once, starting at next_poll. time_ns 0: the present time. */
int record_offcpu_poll_next(struct record_offcpu *o, uint64_t time_ns, size_t most)
{
	int r = 0;

	for (size_t i = 0; i < o->tasks.len && most && !r; i++) {
		struct offcpu_task *task = &o->tasks.v[o->next_poll];

		o->next_poll = o->next_poll + 1 < o->tasks.len ? o->next_poll + 1 : 0;
		o->due -= o->due > 0;
		/* A sampled wait was polled for the same time already. */
		if (!lives(o, task) || (time_ns && task->polled_ns == time_ns))
			continue;
		r = record_offcpu_poll_one(o, task, time_ns ? time_ns : clock_monotonic_ns());
		most--;
	}
	return r;
}

/* Polls threads that got a CPU, so that their finished waits are settled. */
int record_offcpu_poll_switched(struct record_offcpu *o)
{
	size_t n = o->switched.len < RECORD_OFFCPU_POLLS ? o->switched.len : RECORD_OFFCPU_POLLS;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		struct offcpu_task *task = &o->tasks.v[o->switched.v[i]];
		struct schedstat stat;
		uint64_t now_ns = clock_monotonic_ns();

		if (task->switched && !task->ended && o->stats && !o->throttling &&
		    !schedstat_read(o->stats, task->tid, &stat))
			r = offcpu_add_poll(o->offcpu, task->tid, now_ns, &stat);
		task->switched = false;
	}
	o->switched.len -= n;
	if (o->switched.len)
		memmove(o->switched.v, o->switched.v + n, o->switched.len * sizeof(*o->switched.v));
	return r;
}

bool record_offcpu_can_poll(const struct record_offcpu *o)
{
	return o->stats;
}

int record_offcpu_poll(struct record_offcpu *o, uint64_t time_ns, double *ret_width)
{
	int r = record_offcpu_poll_next(o, time_ns, RECORD_OFFCPU_POLLS);

	if (o->read_now && o->writer.read_now)
		o->writer.read_now(o->writer.ctx);
	o->read_now = false;
	*ret_width = (double)o->rates / NS_PER_S;
	return r;
}

void record_offcpu_moved(struct record_offcpu *o, int32_t tid, uint64_t time_ns, bool out)
{
	struct offcpu_task *task = record_offcpu_task(o, tid);

	if (!task || task->ended || time_ns < task->moved_ns)
		return;
	task->moved_ns = time_ns;
	task->moved_out = out;
	if (task->moved)
		return;
	task->moved = !vec_push(&o->moved, (uint32_t)(task - o->tasks.v));
	o->moved_refused |= !task->moved;
}

int record_offcpu_find_waiting(struct record_offcpu *o, uint64_t time_ns, size_t *ret_waiting)
{
	int r = o->moved_refused ? -ENOMEM : 0;

	o->moved_refused = false;
	o->waiting.len = 0;
	for (size_t i = 0; i < o->moved.len; i++) {
		struct offcpu_task *task = &o->tasks.v[o->moved.v[i]];

		task->moved = false;
		/* Since it was noted, the thread may have ended. */
		if (r || !task->moved_out || !lives(o, task))
			continue;
		r = record_offcpu_poll_one(o, task, time_ns);
		if (!r)
			r = vec_push(&o->waiting,
				     ((struct offcpu_waiting){task->tid, task->count}));
	}
	o->moved.len = 0;
	*ret_waiting = o->waiting.len;
	return r;
}

int record_offcpu_follow(struct record_offcpu *o, uint64_t time_ns, size_t *ret_waiting)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < o->waiting.len && !r; i++) {
		const struct offcpu_waiting waiting = o->waiting.v[i];
		struct schedstat stat;

		if (!record_offcpu_wants(o, waiting.tid) ||
		    schedstat_read(o->stats, waiting.tid, &stat))
			continue;
		r = offcpu_add_follow(o->offcpu, waiting.tid, time_ns, &stat);
		if (stat.count == waiting.count)
			o->waiting.v[n++] = waiting;
	}
	*ret_waiting = o->waiting.len = n;
	return r;
}
