#include "profcpu/record/offcpu_records_impl.h"

#include "container/memory_left.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct offcpu_task *record_offcpu_task(const struct record_offcpu *o, int32_t tid)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);

	return index ? &o->tasks.v[*index] : NULL;
}

int record_offcpu_new(const struct record_offcpu_options *options,
		      struct record_offcpu **ret_offcpu)
{
	struct record_offcpu *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->options = *options;
	o->result.stacks_bytes_max =
		memory_left_eighth(options->memory, RECORD_OFFCPU_STACKS_BYTES);
	o->threads_max = RECORD_OFFCPU_THREADS_MIN +
			 memory_left_eighth(options->memory,
					    OFFCPU_THREADS_MAX * RECORD_OFFCPU_THREAD_BYTES) /
				 RECORD_OFFCPU_THREAD_BYTES;
	int r = options->begin_ns ? record_offcpu_begin(o, options->begin_ns) : 0;

	/* Without schedstat only threads without switches stay unknown. */
	if (!r && schedstat_new(options->proc, RECORD_OFFCPU_DESCRIPTORS, &o->stats) == -ENOMEM)
		r = -ENOMEM;
	if (r)
		record_offcpu_free(o);
	else
		*ret_offcpu = o;
	return r;
}

void record_offcpu_free(struct record_offcpu *o)
{
	if (!o)
		return;
	offcpu_free(o->offcpu);
	schedstat_free(o->stats);
	hashmap_free(&o->tids);
	hashmap_free(&o->pids);
	vec_free(&o->tasks);
	vec_free(&o->free);
	vec_free(&o->switched);
	vec_free(&o->moved);
	vec_free(&o->waiting);
	vec_free(&o->words);
	vec_free(&o->waker_offs);
	vec_free(&o->ring_times);
	hashmap_free(&o->first_pids);
	intern_free(&o->stacks);
	free(o);
}

void record_offcpu_to(struct record_offcpu *o, const struct record_offcpu_writer *writer)
{
	o->writer = *writer;
}

bool record_offcpu_wants(const struct record_offcpu *o, int32_t tid)
{
	const struct offcpu_task *task = record_offcpu_task(o, tid);

	return task && !task->ended;
}

size_t record_offcpu_threads(const struct record_offcpu *o)
{
	return o->tasks.len - o->free.len;
}

/* Take a task out of the list of its process. */
static void unlink_task(struct record_offcpu *o, const struct offcpu_task *task)
{
	if (task->after)
		o->tasks.v[task->after - 1].before = task->before;
	if (task->before)
		o->tasks.v[task->before - 1].after = task->after;
	else if (task->after)
		*hashmap_get(&o->pids, (uint32_t)task->pid) = task->after - 1;
	else
		hashmap_remove(&o->pids, (uint32_t)task->pid);
}

/* Put a task first in the list of its process. */
static int link_task(struct record_offcpu *o, uint32_t index)
{
	struct offcpu_task *task = &o->tasks.v[index];
	uint32_t *first;
	int is_new, r = hashmap_entry(&o->pids, (uint32_t)task->pid, index, &first, &is_new);

	if (r || is_new)
		return r;
	task->after = *first + 1;
	o->tasks.v[*first].before = index + 1;
	*first = index;
	return 0;
}

/* A new thread may have the id. */
static void forget_first_pid(struct record_offcpu *o, const struct offcpu_task *task)
{
	const uint32_t *tid = hashmap_get(&o->first_pids, (uint32_t)task->first_pid);

	if (tid && *tid == (uint32_t)task->tid)
		hashmap_remove(&o->first_pids, (uint32_t)task->first_pid);
}

int record_offcpu_remove(struct record_offcpu *o, const struct offcpu_task *task)
{
	int r = vec_push(&o->free, (uint32_t)(task - o->tasks.v));

	if (r)
		return r;
	unlink_task(o, task);
	hashmap_remove(&o->tids, (uint32_t)task->tid);
	forget_first_pid(o, task);
	return 0;
}

static int put_task(struct record_offcpu *o, const struct offcpu_task *task)
{
	struct offcpu_task *known = record_offcpu_task(o, task->tid);
	int r = known ? record_offcpu_remove(o, known) : 0;
	uint32_t index = (uint32_t)o->tasks.len;

	if (!r && o->free.len) {
		index = o->free.v[o->free.len - 1];
		o->tasks.v[index] = *task;
	} else if (!r) {
		r = vec_push(&o->tasks, *task);
	}
	if (!r)
		r = link_task(o, index);
	if (!r)
		r = hashmap_put(&o->tids, (uint32_t)task->tid, index);
	if (!r && o->free.len)
		o->free.len--;
	return r;
}

/* Begins the accounting of a thread that existed before the recording. */
static int begin_existing(struct record_offcpu *o, struct offcpu_task *task)
{
	const struct offcpu_event event = {
		.time_ns = o->options.begin_ns, .tid = task->tid, .kind = OFFCPU_BEGIN};
	int32_t pid = task->pid, tid = task->tid;
	int r = offcpu_add(o->offcpu, &event);

	if (!r)
		r = record_offcpu_poll_one(o, task, event.time_ns);
	return r || !o->writer.request ? r : o->writer.request(o->writer.ctx, pid, tid);
}

int record_offcpu_begin(struct record_offcpu *o, uint64_t begin_ns)
{
	const struct offcpu_listener listener = {.ctx = o,
						 .interval = record_offcpu_take_interval,
						 .unknown = record_offcpu_take_unknown,
						 .unseen = record_offcpu_take_unseen,
						 .thread = record_offcpu_take_thread};
	int r = offcpu_new(begin_ns, o->options.min_ns, &listener, &o->offcpu);

	o->options.begin_ns = begin_ns;
	for (size_t i = 0; i < o->tasks.len && !r; i++)
		if (record_offcpu_task(o, o->tasks.v[i].tid) == &o->tasks.v[i])
			r = begin_existing(o, &o->tasks.v[i]);
	return r;
}

/* Tasks end before the states of their threads do, or the other way round. */
static bool is_full(const struct record_offcpu *o)
{
	size_t tasks = o->tasks.len - o->free.len,
	       threads = o->offcpu ? offcpu_threads(o->offcpu) : 0;

	return (tasks > threads ? tasks : threads) >= o->threads_max;
}

/* Adds a thread that exists or was just created. */
static int begin(struct record_offcpu *o, const struct perfdata_record *record,
		 enum offcpu_kind kind)
{
	const struct offcpu_task task = {.pid = record->pid,
					 .tid = record->tid,
					 .cpu = record->cpu < 0 ? 0 : record->cpu,
					 .stack = OFFCPU_NO_STACK};
	struct offcpu_task *put;
	int r;

	/* 0: in another PID namespace, or idle */
	if (record->tid <= 0 || record_offcpu_wants(o, record->tid))
		return 0;
	if (is_full(o)) {
		o->result.threads_refused++;
		return 0;
	}
	r = put_task(o, &task);
	if (r || !o->offcpu)
		return r;
	put = record_offcpu_task(o, record->tid);
	if (put && record->time_ns <= o->options.begin_ns)
		return begin_existing(o, put);
	return offcpu_add(o->offcpu, &(struct offcpu_event){.time_ns = record->time_ns,
							    .tid = record->tid,
							    .kind = (uint8_t)kind});
}

static int end(struct record_offcpu *o, struct offcpu_task *task, uint64_t time_ns)
{
	task->ended = true;
	record_offcpu_set_rate(o, task, 0);
	if (o->stats)
		schedstat_forget(o->stats, task->tid);
	if (!o->offcpu)
		return record_offcpu_remove(o, task);
	return offcpu_add(
		o->offcpu,
		&(struct offcpu_event){.time_ns = time_ns, .tid = task->tid, .kind = OFFCPU_END});
}

/* At an exec the thread becomes the first of its process. The others are gone, not all with an
 * EXIT. */
static int take_exec(struct record_offcpu *o, const struct perfdata_record *record)
{
	const uint32_t *first = hashmap_get(&o->pids, (uint32_t)record->pid);
	struct offcpu_task *task;
	int r = 0;

	for (uint32_t i = first ? *first + 1 : 0; i && !r;) {
		task = &o->tasks.v[i - 1];
		i = task->after; /* end may drop the task */
		if (task->tid != record->tid && !task->ended)
			r = end(o, task, record->time_ns);
	}
	return r ? r : begin(o, record, OFFCPU_BEGIN);
}

static struct stack_head head_of(const struct unwound *unwound)
{
	return (struct stack_head){.first_spliced = unwound->first_spliced,
				   .first_guess = unwound->first_guess,
				   .grade = unwound->grade,
				   .end = unwound->end};
}

/* Memory of an interned stack of n words. Tables are up to half empty. */
#define STACK_BYTES(n) ((n)*8 + 2 * sizeof(struct intern_entry) + 4 * sizeof(uint32_t))

/* Interns a stack. *ret_stack is OFFCPU_NO_STACK if there is no room. 0 or -ENOMEM. */
static int keep_stack(struct record_offcpu *o, const struct stack_head *head,
		      const struct unwound *unwound, uint32_t *ret_stack)
{
	size_t n = unwound->ncallchain + STACK_HEAD_WORDS, known = o->stacks.len;

	*ret_stack = OFFCPU_NO_STACK;
	o->words.len = 0;
	if (vec_reserve(&o->words, n))
		return -ENOMEM;
	memcpy(o->words.v, head, sizeof(*head));
	if (unwound->ncallchain)
		memcpy(o->words.v + STACK_HEAD_WORDS, unwound->callchain, unwound->ncallchain * 8);
	int r = intern_find(&o->stacks, (const char *)o->words.v, n * 8, ret_stack);

	if (r != -ENOENT)
		return r;
	if (o->stacks_bytes + STACK_BYTES(n) > o->result.stacks_bytes_max) {
		o->result.stacks_refused++;
		return 0;
	}
	r = intern_put(&o->stacks, (const char *)o->words.v, n * 8, ret_stack);
	if (o->stacks.len > known)
		o->stacks_bytes += STACK_BYTES(n);
	return r == -E2BIG ? 0 : r;
}

int record_offcpu_stack(struct record_offcpu *o, const struct perfdata_record *sample,
			const struct unwound *unwound)
{
	struct offcpu_task *task = record_offcpu_task(o, sample->tid);
	const struct stack_head head = head_of(unwound);

	return task && !task->ended ? keep_stack(o, &head, unwound, &task->stack) : 0;
}

int record_offcpu_add_stack(struct record_offcpu *o, int32_t tid, uint64_t count,
			    const struct unwound *unwound)
{
	const struct stack_head head = head_of(unwound);
	uint32_t stack;
	int r = keep_stack(o, &head, unwound, &stack);

	return r ? r : offcpu_add_stack(o->offcpu, tid, count, stack);
}

int record_offcpu_learn(struct record_offcpu *o, int32_t first_pid, int32_t tid)
{
	struct offcpu_task *task = record_offcpu_task(o, tid);

	if (o->options.first_pids || first_pid <= 0 || !task || task->first_pid == first_pid)
		return 0;
	forget_first_pid(o, task);
	task->first_pid = first_pid;
	return hashmap_put(&o->first_pids, (uint32_t)first_pid, (uint32_t)tid);
}

int32_t record_offcpu_known(const struct record_offcpu *o, int32_t first_pid)
{
	const uint32_t *known =
		o->options.first_pids ? NULL : hashmap_get(&o->first_pids, (uint32_t)first_pid);
	int32_t tid = o->options.first_pids ? first_pid : known ? (int32_t)*known : 0;

	return tid > 0 && record_offcpu_wants(o, tid) ? tid : 0;
}

/* Writes a waker at its first waking. */
static int put_waker(struct record_offcpu *o, const struct perfdata_record *record,
		     const struct stack_head *head, const struct unwound *unwound, uint32_t stack)
{
	const struct perfdata_offcpu sample = {.pid = head->pid,
					       .tid = head->tid,
					       .cpu = record->cpu < 0 ? 0 : record->cpu,
					       .time_ns = record->time_ns,
					       .callchain = unwound->callchain,
					       .ncallchain = unwound->ncallchain};

	while (o->waker_offs.len <= stack)
		if (vec_push(&o->waker_offs, 0))
			return -ENOMEM;
	return o->waker_offs.v[stack]
		       ? 0
		       : o->writer.waker(o->writer.ctx, &sample, unwound, &o->waker_offs.v[stack]);
}

int record_offcpu_waking(struct record_offcpu *o, int32_t tid, const struct perfdata_record *waker,
			 uint8_t flags, const struct unwound *unwound)
{
	bool interrupt = flags & OFFCPU_IDX_INTERRUPT;
	struct stack_head head = head_of(unwound);
	struct offcpu_event event = {.time_ns = waker->time_ns,
				     .tid = tid,
				     .by = interrupt ? INTERRUPT : waker->tid,
				     .kind = OFFCPU_WAKING};

	head.is_waker = 1;
	head.flags = flags;
	head.pid = interrupt ? 0 : waker->pid;
	head.tid = interrupt ? 0 : waker->tid;
	int r = keep_stack(o, &head, unwound, &event.stack);

	if (!r && event.stack != OFFCPU_NO_STACK)
		r = put_waker(o, waker, &head, unwound, event.stack);
	return r ? r : offcpu_add(o->offcpu, &event);
}

static int take_switch(struct record_offcpu *o, const struct perfdata_record *record)
{
	struct offcpu_task *task = record_offcpu_task(o, record->tid);
	struct offcpu_event event = {.time_ns = record->time_ns,
				     .tid = record->tid,
				     .kind = OFFCPU_IN,
				     .stack = OFFCPU_NO_STACK};

	if (!task || task->ended)
		return 0;
	if (record->cpu >= 0)
		task->cpu = record->cpu;
	if (record->misc & PERF_RECORD_MISC_SWITCH_OUT) {
		event.kind = OFFCPU_OUT;
		event.flags =
			record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? OFFCPU_PREEMPTED : 0;
		event.stack = task->stack;
	}
	task->stack = OFFCPU_NO_STACK;
	if (event.kind == OFFCPU_IN && !task->switched) {
		if (vec_push(&o->switched, (uint32_t)(task - o->tasks.v)))
			return -ENOMEM;
		task->switched = true;
	}
	return offcpu_add(o->offcpu, &event);
}

uint64_t record_offcpu_take_others(struct record_offcpu *o)
{
	uint64_t n = o->others;

	o->others = 0;
	return n;
}

int record_offcpu_apply(struct record_offcpu *o, const struct perfdata_record *record)
{
	struct offcpu_task *task;

	switch (record->type) {
	case PERF_RECORD_FORK:
		if (o->options.kthreadd && (record->pid == o->options.kthreadd ||
					    record->task.ppid == o->options.kthreadd))
			return 0;
		return begin(o, record, record->time_ns ? OFFCPU_CREATED : OFFCPU_BEGIN);
	case PERF_RECORD_COMM:
		return record->comm.exec ? take_exec(o, record) : 0;
	case PERF_RECORD_EXIT:
		task = record_offcpu_task(o, record->tid);
		return task && !task->ended ? end(o, task, record->time_ns) : 0;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return take_switch(o, record);
	default:
		return 0;
	}
}

int record_offcpu_round(struct record_offcpu *o)
{
	if (!o->offcpu)
		return 0;
	int r = record_offcpu_take_full(o, UINT64_MAX);

	/* Polls due after a loss or after throttling. */
	if (!r && o->due && !o->throttling)
		r = record_offcpu_poll_next(
			o, 0, o->due < RECORD_OFFCPU_POLLS ? o->due : RECORD_OFFCPU_POLLS);
	if (!r)
		r = record_offcpu_poll_switched(o);
	return r ? r : offcpu_round(o->offcpu);
}

int record_offcpu_mark(struct record_offcpu *o, enum offcpu_kind kind, uint64_t time_ns)
{
	o->throttling = kind != OFFCPU_WHOLE;
	o->due = o->throttling ? 0 : o->tasks.len;
	return offcpu_add(o->offcpu,
			  &(struct offcpu_event){.time_ns = time_ns, .kind = (uint8_t)kind});
}

int record_offcpu_finish(struct record_offcpu *o, uint64_t end_ns)
{
	if (!o->offcpu)
		return 0;
	int r = record_offcpu_take_full(o, end_ns);

	if (!r)
		r = record_offcpu_poll_next(o, end_ns, SIZE_MAX);
	return r ? r : offcpu_finish(o->offcpu, end_ns);
}

struct record_offcpu_result record_offcpu_result(const struct record_offcpu *o)
{
	return o->result;
}
