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

/* Polls up to `most` threads, each once, starting at next_poll. time_ns 0: the present time. */
int record_offcpu_poll_next(struct record_offcpu *o, uint64_t time_ns, size_t most)
{
	int r = 0;

	for (size_t i = 0; i < o->tasks.len && most && !r; i++) {
		struct offcpu_task *task = &o->tasks.v[o->next_poll];

		o->next_poll = o->next_poll + 1 < o->tasks.len ? o->next_poll + 1 : 0;
		o->due -= o->due > 0;
		if (record_offcpu_task(o, task->tid) != task || task->ended)
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
