#include "profcpu/record_offcpu.h"

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "sampler/schedstat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A thread by its id, until the last of its waits was handed over. */
struct offcpu_task {
	int32_t pid, tid, cpu; /* cpu: where it was last seen */
	uint32_t stack; /* with which it is about to leave its CPU */
	bool ended;
	uint64_t run_ns, looked_ns; /* schedstat's, when it was looked at; 0: it was not */
	uint64_t count, met_ns, ask_ns; /* schedstat's; since when it was found to have that; when that is so for this long its stack is asked for */
	uint64_t rate; /* of a second how many ns it ran between the last two looks; part of rates */
};

/* What is kept of a stack: this, and behind it the callchain. */
struct stack_head {
	uint16_t first_spliced, first_guess;
	uint8_t grade, end;
	uint8_t is_waker, flags; /* flags: of a waker, of enum offcpu_idx_flags */
	int32_t pid, tid; /* of a waker; else 0 */
};
#define STACK_HEAD_WORDS 2
_Static_assert(sizeof(struct stack_head) == 8 * STACK_HEAD_WORDS, "words follow");

/* Of a CPU's ring: times, or 0. */
struct cpu_met {
	uint64_t met_ns; /* of the last record */
	uint64_t full_ns; /* it had no room */
};

#define CPUS_MAX 8192
#define ASK_TIMES 8
#define INTERRUPT (-1) /* as a waker */

struct record_offcpu {
	struct record_offcpu_options options;
	struct record_offcpu_writer writer;
	struct offcpu *offcpu;
	struct schedstat_reader *stats; /* NULL: this kernel does not count */
	struct hashmap tids; /* to tasks; UINT32_MAX: none */
	VEC(struct offcpu_task) tasks;
	VEC(uint32_t) free; /* of tasks */
	size_t next_look; /* of tasks; looks go round, whatever asks for them */
	size_t due; /* places of tasks from there on that are to be looked at by the rounds that follow */
	uint64_t rates; /* of all tasks */
	struct intern stacks; /* struct stack_head and words */
	size_t stacks_bytes;
	VEC(uint64_t) waker_offs; /* by stack: where its sample is; 0: it is no waker's */
	struct hashmap first_pids; /* pids of the first PID namespace to ours */
	VEC(uint64_t) words; /* a stack that is put together */
	VEC(struct cpu_met) met; /* by CPU */
	bool full; /* there is a full_ns */
	bool shedding; /* looks are made at marks, not in rounds */
	bool hurry; /* something was asked for that can be over soon */
	uint64_t others; /* samples in the context of other threads */
	struct record_offcpu_result result;
};

static struct offcpu_task *task_of(const struct record_offcpu *o, int32_t tid)
{
	const uint32_t *index = hashmap_get(&o->tids, (uint32_t)tid);

	return index && *index != UINT32_MAX ? &o->tasks.v[*index] : NULL;
}

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
		.flags = (uint8_t)((i->wait == OFFCPU_RUNNABLE ? OFFCPU_IDX_PREEMPTED : 0) | (i->cut_begin ? OFFCPU_IDX_CUT_BEGIN : 0) |
				   (i->cut_end ? OFFCPU_IDX_CUT_END : 0) | (i->estimated ? OFFCPU_IDX_ESTIMATED : 0) |
				   (i->waker == INTERRUPT ? OFFCPU_IDX_INTERRUPT : 0) | waker.flags),
	};
}

static int take_interval(void *ctx, const struct offcpu_interval *interval)
{
	struct record_offcpu *o = ctx;
	const struct offcpu_task *task = task_of(o, interval->tid);
	struct offcpu_idx_wait row = row_of(o, interval);
	struct unwound unwound = {.grade = UNWIND_NO_STACK, .first_spliced = UINT16_MAX, .first_guess = UINT16_MAX};
	struct perfdata_offcpu sample = {
		.pid = task ? task->pid : interval->tid,
		.tid = interval->tid,
		.cpu = task ? task->cpu : 0,
		/* Ends may become known late; perf wants samples in order. */
		.time_ns = offcpu_done(o->offcpu),
		.off_ns = interval->blocked_ns + interval->runnable_ns,
	};

	if (!sample.off_ns)
		return 0;
	if (!interval->estimated && interval->in_ns != sample.time_ns)
		row.end_ns = interval->in_ns;
	if (interval->stack != OFFCPU_NO_STACK) {
		size_t n = intern_len(&o->stacks, interval->stack) / 8;
		struct stack_head head;

		if (vec_reserve(&o->words, n))
			return -ENOMEM;
		/* Interned text stands anywhere. */
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

static int take_thread(void *ctx, pid_t tid, const struct offcpu_totals *t)
{
	struct record_offcpu *o = ctx;
	struct offcpu_task *task = task_of(o, tid);
	const struct offcpu_idx_thread row = {
		.tid = tid, .pid = task ? task->pid : 0, .begin_ns = t->begin_ns, .end_ns = t->end_ns, .running_ns = t->running_ns,
		.blocked_ns = t->blocked_ns, .runnable_ns = t->runnable_ns, .unknown_ns = t->unknown_ns, .short_ns = t->short_ns,
		.short_count = t->short_count, .no_stack_ns = t->no_stack_ns, .estimated_ns = t->estimated_ns};
	int r = o->writer.thread(o->writer.ctx, &row);

	o->result.short_waits += t->short_count;
	o->result.short_ns += t->short_ns;
	o->result.no_stack_ns += t->no_stack_ns;
	o->result.unknown_ns += t->unknown_ns;
	o->result.unwatched_ns += t->unwatched_ns;
	o->result.estimated_ns += t->estimated_ns;
	o->result.life_ns += t->end_ns - t->begin_ns;
	/* Unless it is another one with that id by now. */
	if (r || !task || !task->ended)
		return r;
	*hashmap_get(&o->tids, (uint32_t)tid) = UINT32_MAX;
	return vec_push(&o->free, (uint32_t)(task - o->tasks.v));
}

static int take_unseen(void *ctx, pid_t tid)
{
	struct record_offcpu *o = ctx;
	const struct offcpu_task *task = task_of(o, tid);

	return task && !task->ended && o->writer.ask ? o->writer.ask(o->writer.ctx, task->pid, tid) : 0;
}

int record_offcpu_new(const struct record_offcpu_options *options, struct record_offcpu **ret_offcpu)
{
	struct record_offcpu *o = calloc(1, sizeof(*o));
	struct offcpu_listener listener = {.ctx = o, .interval = take_interval, .unseen = take_unseen, .thread = take_thread};

	if (!o)
		return -ENOMEM;
	o->options = *options;
	int r = offcpu_new(options->begin_ns, options->min_ns, &listener, &o->offcpu);

	/* Without it only threads that are never switched are not known. */
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
	vec_free(&o->tasks);
	vec_free(&o->free);
	vec_free(&o->words);
	vec_free(&o->waker_offs);
	vec_free(&o->met);
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
	const struct offcpu_task *task = task_of(o, tid);

	return task && !task->ended;
}

size_t record_offcpu_threads(const struct record_offcpu *o)
{
	return o->tasks.len - o->free.len;
}

static int put_task(struct record_offcpu *o, const struct offcpu_task *task)
{
	struct offcpu_task *known = task_of(o, task->tid);
	uint32_t index = (uint32_t)o->tasks.len;
	int r;

	if (known) {
		*known = *task;
		return 0;
	}
	if (o->free.len) {
		index = o->free.v[o->free.len - 1];
		o->tasks.v[index] = *task;
	} else {
		r = vec_push(&o->tasks, *task);
		if (r)
			return r;
	}
	r = hashmap_put(&o->tids, (uint32_t)task->tid, index);
	if (!r && o->free.len && o->free.v[o->free.len - 1] == index)
		o->free.len--;
	return r;
}

static void set_rate(struct record_offcpu *o, struct offcpu_task *task, double rate)
{
	o->rates -= task->rate;
	/* The kernel's word may be a tick old, so that it seems to be more. */
	task->rate = rate < NS_PER_S ? (uint64_t)rate : NS_PER_S;
	o->rates += task->rate;
}

/* In which wait it is, while events are off. Its stack is of use now: when this look is dealt with the wait can be over. That nothing came of
 * it is found ever less often. */
static int meet(struct record_offcpu *o, struct offcpu_task *task, uint64_t count, uint64_t time_ns)
{
	if (!o->shedding || !task->met_ns || task->count != count) {
		task->count = count;
		task->met_ns = o->shedding ? time_ns : 0;
		task->ask_ns = OFFCPU_STAY_NS;
		return 0;
	}
	if (time_ns - task->met_ns < task->ask_ns || !o->writer.ask || !offcpu_wants(o->offcpu, task->tid, count))
		return 0;
	task->ask_ns = ASK_TIMES * (time_ns - task->met_ns);
	o->hurry = true;
	return o->writer.ask(o->writer.ctx, task->pid, task->tid);
}

static int look(struct record_offcpu *o, struct offcpu_task *task, uint64_t time_ns)
{
	struct schedstat stat;

	if (!o->stats || schedstat_read(o->stats, task->tid, &stat))
		return 0;
	if (task->looked_ns && time_ns > task->looked_ns)
		set_rate(o, task, (double)(stat.run_ns - task->run_ns) / (double)(time_ns - task->looked_ns) * NS_PER_S);
	task->run_ns = stat.run_ns;
	task->looked_ns = time_ns;
	int r = meet(o, task, stat.count, time_ns);

	return r ? r : offcpu_look(o->offcpu, task->tid, time_ns, &stat);
}

/* There it is, or it was just created. */
static int begin(struct record_offcpu *o, const struct perfdata_record *record, enum offcpu_kind kind)
{
	const struct offcpu_task task = {.pid = record->pid, .tid = record->tid, .cpu = record->cpu < 0 ? 0 : record->cpu,
					 .stack = OFFCPU_NO_STACK};
	uint64_t time_ns = record->time_ns ? record->time_ns : o->options.begin_ns;
	int r;

	/* 0: of another PID namespace, or idle. */
	if (record->tid <= 0 || record_offcpu_wants(o, record->tid))
		return 0;
	r = put_task(o, &task);
	if (!r)
		r = offcpu_add(o->offcpu, &(struct offcpu_event){.time_ns = time_ns, .tid = record->tid, .kind = (uint8_t)kind});
	/* Of one that began later a look would be too late. */
	if (r || record->time_ns)
		return r;
	r = look(o, task_of(o, record->tid), time_ns);
	return r || !o->writer.ask ? r : o->writer.ask(o->writer.ctx, record->pid, record->tid);
}

static int end(struct record_offcpu *o, struct offcpu_task *task, uint64_t time_ns)
{
	task->ended = true;
	set_rate(o, task, 0);
	if (o->stats)
		schedstat_forget(o->stats, task->tid);
	return offcpu_add(o->offcpu, &(struct offcpu_event){.time_ns = time_ns, .tid = task->tid, .kind = OFFCPU_END});
}

/* The thread that executes a program becomes the first of its process, and the others are gone, not all with a word. */
static int take_exec(struct record_offcpu *o, const struct perfdata_record *record)
{
	int r = 0;

	for (size_t i = 0; i < o->tasks.len && !r; i++) {
		struct offcpu_task *task = &o->tasks.v[i];

		if (task->pid == record->pid && task->tid != record->tid && record_offcpu_wants(o, task->tid))
			r = end(o, task, record->time_ns);
	}
	return r ? r : begin(o, record, OFFCPU_BEGIN);
}

static struct stack_head head_of(const struct unwound *unwound)
{
	return (struct stack_head){.first_spliced = unwound->first_spliced, .first_guess = unwound->first_guess,
				   .grade = unwound->grade, .end = unwound->end};
}

/* As a number of o->stacks: *ret_stack is OFFCPU_NO_STACK where there is no room. 0 or -ENOMEM. */
static int keep_stack(struct record_offcpu *o, const struct stack_head *head, const struct unwound *unwound, uint32_t *ret_stack)
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
	if (o->stacks_bytes + n * 8 > RECORD_OFFCPU_STACKS_BYTES) {
		o->result.stacks_refused++;
		return 0;
	}
	r = intern_put(&o->stacks, (const char *)o->words.v, n * 8, ret_stack);
	if (o->stacks.len > known)
		o->stacks_bytes += n * 8;
	return r == -E2BIG ? 0 : r;
}

int record_offcpu_stack(struct record_offcpu *o, const struct perfdata_record *sample, const struct unwound *unwound)
{
	struct offcpu_task *task = task_of(o, sample->tid);
	const struct stack_head head = head_of(unwound);

	return task && !task->ended ? keep_stack(o, &head, unwound, &task->stack) : 0;
}

int record_offcpu_seen(struct record_offcpu *o, int32_t tid, uint64_t count, const struct unwound *unwound)
{
	const struct stack_head head = head_of(unwound);
	uint32_t stack;
	int r = keep_stack(o, &head, unwound, &stack);

	return r ? r : offcpu_seen(o->offcpu, tid, count, stack);
}

int record_offcpu_learn(struct record_offcpu *o, int32_t first_pid, int32_t tid)
{
	uint32_t *known = hashmap_get(&o->first_pids, (uint32_t)first_pid);

	if (o->options.first_pids || first_pid <= 0 || (known && *known == (uint32_t)tid))
		return 0;
	return hashmap_put(&o->first_pids, (uint32_t)first_pid, (uint32_t)tid);
}

int32_t record_offcpu_known(const struct record_offcpu *o, int32_t first_pid)
{
	const uint32_t *known = o->options.first_pids ? NULL : hashmap_get(&o->first_pids, (uint32_t)first_pid);
	int32_t tid = o->options.first_pids ? first_pid : known ? (int32_t)*known : 0;

	return tid > 0 && record_offcpu_wants(o, tid) ? tid : 0;
}

/* A waker that was not met before goes to the writer. */
static int put_waker(struct record_offcpu *o, const struct perfdata_record *record, const struct stack_head *head,
		     const struct unwound *unwound, uint32_t stack)
{
	const struct perfdata_offcpu sample = {.pid = head->pid, .tid = head->tid, .cpu = record->cpu < 0 ? 0 : record->cpu,
					       .time_ns = record->time_ns, .callchain = unwound->callchain, .ncallchain = unwound->ncallchain};

	while (o->waker_offs.len <= stack)
		if (vec_push(&o->waker_offs, 0))
			return -ENOMEM;
	return o->waker_offs.v[stack] ? 0 : o->writer.waker(o->writer.ctx, &sample, unwound, &o->waker_offs.v[stack]);
}

int record_offcpu_waking(struct record_offcpu *o, int32_t tid, const struct perfdata_record *waker, uint8_t flags,
			 const struct unwound *unwound)
{
	bool interrupt = flags & OFFCPU_IDX_INTERRUPT;
	struct stack_head head = head_of(unwound);
	struct offcpu_event event = {.time_ns = waker->time_ns, .tid = tid, .by = interrupt ? INTERRUPT : waker->tid,
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
	struct offcpu_task *task = task_of(o, record->tid);
	struct offcpu_event event = {.time_ns = record->time_ns, .tid = record->tid, .kind = OFFCPU_IN, .stack = OFFCPU_NO_STACK};

	if (!task || task->ended)
		return 0;
	if (record->cpu >= 0)
		task->cpu = record->cpu;
	if (record->misc & PERF_RECORD_MISC_SWITCH_OUT) {
		event.kind = OFFCPU_OUT;
		event.flags = record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? OFFCPU_PREEMPTED : 0;
		event.stack = task->stack;
	}
	task->stack = OFFCPU_NO_STACK;
	return offcpu_add(o->offcpu, &event);
}

uint64_t record_offcpu_others(struct record_offcpu *o)
{
	uint64_t n = o->others;

	o->others = 0;
	return n;
}

/* *ret_met: NULL, where there is no such CPU. 0 or -ENOMEM. */
static int met_of(struct record_offcpu *o, int32_t cpu, struct cpu_met **ret_met)
{
	*ret_met = NULL;
	if (cpu < 0 || cpu >= CPUS_MAX)
		return 0;
	while (o->met.len <= (size_t)cpu)
		if (vec_push(&o->met, ((struct cpu_met){0})))
			return -ENOMEM;
	*ret_met = &o->met.v[cpu];
	return 0;
}

int record_offcpu_met(struct record_offcpu *o, const struct perfdata_record *record)
{
	struct cpu_met *met;
	int r = met_of(o, record->cpu, &met);

	o->others += record->type == PERF_RECORD_SAMPLE && !record_offcpu_wants(o, record->tid);
	if (met)
		met->met_ns = record->time_ns;
	return r;
}

int record_offcpu_lost(struct record_offcpu *o, int32_t cpu, uint64_t time_ns)
{
	uint64_t from_ns = cpu >= 0 && (size_t)cpu < o->met.len ? o->met.v[cpu].met_ns : 0;

	if (from_ns < o->options.begin_ns)
		from_ns = o->options.begin_ns;
	o->due = o->tasks.len;
	return offcpu_add(o->offcpu, &(struct offcpu_event){
					     .time_ns = from_ns < time_ns ? from_ns : time_ns, .until_ns = time_ns, .kind = OFFCPU_LOST});
}

int record_offcpu_full(struct record_offcpu *o, int32_t cpu, uint64_t time_ns)
{
	struct cpu_met *met;
	int r = met_of(o, cpu, &met);

	if (met)
		met->full_ns = time_ns;
	o->full |= met != NULL;
	return r;
}

/* Rings that were full before what was read now. If a record came behind that, the kernel has said what is missing before it. */
static int take_full(struct record_offcpu *o, uint64_t end_ns)
{
	int r = 0;

	for (size_t i = 0; i < o->met.len && o->full && !r; i++) {
		struct cpu_met *met = &o->met.v[i];
		uint64_t until_ns = met->full_ns < end_ns ? met->full_ns : end_ns;

		if (met->met_ns < until_ns)
			r = record_offcpu_lost(o, (int32_t)i, until_ns);
		met->full_ns = 0;
	}
	o->full = false;
	return r;
}

/* At `most` threads, from the next on, at most once round. time_ns 0: each for the time at which it is. */
static int look_at(struct record_offcpu *o, uint64_t time_ns, size_t most)
{
	int r = 0;

	for (size_t i = 0; i < o->tasks.len && most && !r; i++) {
		struct offcpu_task *task = &o->tasks.v[o->next_look];

		o->next_look = o->next_look + 1 < o->tasks.len ? o->next_look + 1 : 0;
		o->due -= o->due > 0;
		if (task_of(o, task->tid) != task || task->ended)
			continue;
		r = look(o, task, time_ns ? time_ns : clock_monotonic_ns());
		most--;
	}
	return r;
}

int record_offcpu_apply(struct record_offcpu *o, const struct perfdata_record *record)
{
	struct offcpu_task *task;

	switch (record->type) {
	case PERF_RECORD_FORK:
		if (o->options.kthreadd && (record->pid == o->options.kthreadd || record->task.ppid == o->options.kthreadd))
			return 0;
		return begin(o, record, record->time_ns ? OFFCPU_CREATED : OFFCPU_BEGIN);
	case PERF_RECORD_COMM:
		return record->comm.exec ? take_exec(o, record) : 0;
	case PERF_RECORD_EXIT:
		task = task_of(o, record->tid);
		return task && !task->ended ? end(o, task, record->time_ns) : 0;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return take_switch(o, record);
	default:
		return 0;
	}
}

int record_offcpu_round(struct record_offcpu *o)
{
	int r = take_full(o, UINT64_MAX);

	/* What a loss, or the end of shedding, asked for. */
	if (!r && o->due && !o->shedding)
		r = look_at(o, 0, o->due < RECORD_OFFCPU_LOOKS ? o->due : RECORD_OFFCPU_LOOKS);
	return r ? r : offcpu_round(o->offcpu);
}

bool record_offcpu_may_look(const struct record_offcpu *o)
{
	return o->stats;
}

int record_offcpu_tell(struct record_offcpu *o, enum offcpu_kind kind, uint64_t time_ns)
{
	o->shedding = kind != OFFCPU_WHOLE;
	o->due = o->shedding ? 0 : o->tasks.len;
	return offcpu_add(o->offcpu, &(struct offcpu_event){.time_ns = time_ns, .kind = (uint8_t)kind});
}

int record_offcpu_look(struct record_offcpu *o, uint64_t time_ns, double *ret_width)
{
	int r = look_at(o, time_ns, RECORD_OFFCPU_LOOKS);

	if (o->hurry && o->writer.hurry)
		o->writer.hurry(o->writer.ctx);
	o->hurry = false;
	*ret_width = (double)o->rates / NS_PER_S;
	return r;
}

int record_offcpu_finish(struct record_offcpu *o, uint64_t end_ns)
{
	int r = take_full(o, end_ns);

	if (!r)
		r = look_at(o, end_ns, SIZE_MAX);

	return r ? r : offcpu_finish(o->offcpu, end_ns);
}

struct record_offcpu_result record_offcpu_result(const struct record_offcpu *o)
{
	return o->result;
}
