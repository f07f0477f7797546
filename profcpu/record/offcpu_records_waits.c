/* Turns finished waits and threads into samples and rows for the writer. */
#include "profcpu/record/offcpu_records_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct offcpu_idx_wait row_of(const struct record_offcpu *o, const struct offcpu_interval *i)
{
	bool has_waker = i->waker_stack != OFFCPU_NO_STACK && i->waker_stack < o->waker_offs.len;
	struct stack_head waker = {0};

	if (has_waker)
		memcpy(&waker, intern_text(&o->stacks, i->waker_stack), sizeof(waker));
	return (struct offcpu_idx_wait){
		.woken_ns = i->woken_ns,
		.runnable_ns = i->runnable_ns,
		.count = i->count,
		.waker_off = has_waker ? o->waker_offs.v[i->waker_stack] : 0,
		.waker = i->waker > 0 ? i->waker : 0,
		.flags =
			(uint8_t)((i->wait == OFFCPU_RUNNABLE ? OFFCPU_IDX_PREEMPTED : 0) |
				  (i->cut_begin ? OFFCPU_IDX_CUT_BEGIN : 0) |
				  (i->cut_end ? OFFCPU_IDX_CUT_END : 0) |
				  (i->estimated ? OFFCPU_IDX_ESTIMATED : 0) |
				  (i->waker == INTERRUPT ? OFFCPU_IDX_INTERRUPT : 0) | waker.flags),
	};
}

int record_offcpu_take_interval(void *ctx, const struct offcpu_interval *interval)
{
	struct record_offcpu *o = ctx;
	const struct offcpu_task *task = record_offcpu_task(o, interval->tid);
	struct offcpu_idx_wait row = row_of(o, interval);
	struct unwound unwound = {
		.grade = UNWIND_NO_STACK, .first_spliced = UINT16_MAX, .first_guess = UINT16_MAX};
	struct perfdata_offcpu sample = {
		.pid = task ? task->pid : interval->tid,
		.tid = interval->tid,
		.cpu = task ? task->cpu : 0,
		.time_ns = interval->in_ns,
		.off_ns = interval->blocked_ns + interval->runnable_ns,
	};

	if (!sample.off_ns)
		return 0;
	/* The end of a wait may be found late, but perf needs rounds in order of time. */
	if (sample.time_ns < offcpu_round_ns(o->offcpu)) {
		sample.time_ns = offcpu_round_ns(o->offcpu);
		row.end_ns = interval->estimated ? 0 : interval->in_ns;
	}
	if (interval->stack != OFFCPU_NO_STACK) {
		size_t n = intern_len(&o->stacks, interval->stack) / 8;
		struct stack_head head;

		if (vec_reserve(&o->words, n))
			return -ENOMEM;
		/* Interned text is not aligned. */
		memcpy(o->words.v, intern_text(&o->stacks, interval->stack), n * 8);
		memcpy(&head, o->words.v, sizeof(head));
		unwound.grade = head.grade;
		unwound.end = head.end;
		unwound.first_spliced = head.first_spliced;
		unwound.first_guess = head.first_guess;
		sample.callchain = o->words.v + STACK_HEAD_WORDS;
		sample.ncallchain = n - STACK_HEAD_WORDS;
	}
	o->result.blocked_ns += interval->blocked_ns;
	o->result.woken_ns += row.waker_off || interval->waker ? interval->blocked_ns : 0;
	o->result.waits++;
	o->result.off_ns += sample.off_ns;
	return o->writer.wait(o->writer.ctx, &sample, &unwound, &row);
}

int record_offcpu_take_unknown(void *ctx, pid_t tid, uint64_t from_ns, uint64_t to_ns)
{
	struct record_offcpu *o = ctx;
	const struct offcpu_idx_unknown unknown = {
		.tid = tid, .begin_ns = from_ns, .end_ns = to_ns};

	return o->writer.unknown ? o->writer.unknown(o->writer.ctx, &unknown) : 0;
}

int record_offcpu_take_thread(void *ctx, pid_t tid, const struct offcpu_totals *t)
{
	struct record_offcpu *o = ctx;
	struct offcpu_task *task = record_offcpu_task(o, tid);
	const struct offcpu_idx_thread row = {.tid = tid,
					      .pid = task ? task->pid : 0,
					      .begin_ns = t->begin_ns,
					      .end_ns = t->end_ns,
					      .running_ns = t->running_ns,
					      .blocked_ns = t->blocked_ns,
					      .runnable_ns = t->runnable_ns,
					      .unknown_ns = t->unknown_ns,
					      .short_ns = t->short_ns,
					      .short_count = t->short_count,
					      .no_stack_ns = t->no_stack_ns,
					      .estimated_ns = t->estimated_ns};
	int r = o->writer.thread(o->writer.ctx, &row);

	o->result.short_waits += t->short_count;
	o->result.short_ns += t->short_ns;
	o->result.no_stack_ns += t->no_stack_ns;
	o->result.unknown_ns += t->unknown_ns;
	o->result.unwatched_ns += t->unwatched_ns;
	o->result.estimated_ns += t->estimated_ns;
	o->result.unsettled += t->unsettled;
	o->result.life_ns += t->end_ns - t->begin_ns;
	/* A new thread may have the id. */
	return r || !task || !task->ended ? r : record_offcpu_remove(o, task);
}

int record_offcpu_take_unseen(void *ctx, pid_t tid)
{
	struct record_offcpu *o = ctx;
	const struct offcpu_task *task = record_offcpu_task(o, tid);

	return task && !task->ended && o->writer.request
		       ? o->writer.request(o->writer.ctx, task->pid, tid)
		       : 0;
}
