#include "profcpu/compare/compare.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The sampler wakes, stops the threads and notes them within this time. */
#define COMPARE_WAKE_NS (5 * NS_PER_MS)
/* A switch of threads takes this long, with the copy of a stack, and seldom more. */
#define COMPARE_SWITCH_NS UINT64_C(30000)
/* If the sampler waited longer for its CPU, the threads went on meanwhile. */
#define COMPARE_RUNNABLE_NS UINT64_C(100000)
/* A thread that was stopped is awake again this long after the sampler has let it run. */
#define COMPARE_RESUME_NS (NS_PER_MS / 2)

/* The names of a sample. */
struct compare_named {
	uint32_t thread, stack; /* PROFILE_NONE: not named */
};

struct compare {
	struct profile *profile;
	struct claims claims;
	VEC(struct compare_named) named; /* by sample */
	size_t next;                     /* sample to name */
	struct unnamed_callchain callchain;
	struct trace_place place;
	int32_t sampler; /* tid; 0: unknown */
	struct timeline *timeline;
	VEC(struct compare_thread) threads;
	struct hashmap thread_of; /* tid -> index */
	VEC(struct compare_cell) cells;
	struct hashmap cell_of;
	struct compare_totals totals;
};

static void move_clock(struct compare *c)
{
	for (size_t i = 0; i < c->claims.v.len; i++)
		c->claims.v.v[i].time_ns = trace_place_ns(&c->place, c->claims.v.v[i].time_ns);
	for (size_t i = 0; i < c->claims.rounds.len; i++) {
		struct timeline_span *round = &c->claims.rounds.v[i];

		round->begin_ns = trace_place_ns(&c->place, round->begin_ns);
		if (round->end_ns)
			round->end_ns = trace_place_ns(&c->place, round->end_ns);
	}
}

static int thread_of(struct compare *c, int32_t tid, struct compare_thread **ret_thread)
{
	const struct compare_thread blank = {.tid = tid, .thread = PROFILE_NONE};
	uint32_t *index;
	int fresh, r = hashmap_entry(&c->thread_of, (uint32_t)tid, (uint32_t)c->threads.len, &index,
				     &fresh);

	if (!r && fresh)
		r = vec_push(&c->threads, blank);
	if (!r)
		*ret_thread = &c->threads.v[*index];
	return r;
}

static struct compare_thread *known_thread(const struct compare *c, int32_t tid)
{
	const uint32_t *index = hashmap_get(&c->thread_of, (uint32_t)tid);

	return index ? &c->threads.v[*index] : NULL;
}

static int prepare(struct compare *c)
{
	const struct compare_named blank = {PROFILE_NONE, PROFILE_NONE};
	const struct claims *s = &c->claims;
	size_t n = s->v.len;
	int r = 0;

	c->totals.samples = n;
	c->totals.left_out = s->left_out;
	c->totals.lost = s->lost;
	c->totals.is_cut = s->is_cut;
	c->totals.rounds = s->rounds.len;
	if (!n)
		return -ENODATA;
	c->totals.from_ns = s->v.v[0].time_ns;
	c->totals.to_ns = s->v.v[n - 1].time_ns;
	c->sampler = s->sampler ? trace_place_tid(&c->place, s->sampler) : 0;
	for (size_t i = 0; i < n && !r; i++) {
		struct compare_thread *thread;

		c->totals.outside += s->v.v[i].outside;
		r = vec_push(&c->named, blank);
		if (!r)
			r = thread_of(c, trace_place_tid(&c->place, s->v.v[i].tid), &thread);
	}
	return r;
}

int compare_new(struct profile *profile, const struct compare_options *options,
		struct compare **ret_compare, struct parse_error *err)
{
	struct compare *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->profile = profile;
	int r = timeline_new(&c->timeline), damage = 0;

	if (!r)
		r = damage = claims_read(options->trace_fd, options->max_bytes, &c->claims, err);
	if (damage == -EBADMSG || damage == -E2BIG)
		r = c->claims.v.len ? 0 : damage;
	if (!r)
		r = trace_place_find(&options->place, &c->claims.head, &c->place);
	c->totals.clock_offset_ns = c->place.offset_ns;
	c->totals.clock_error_ns = c->place.error_ns;
	move_clock(c);
	if (!r)
		r = prepare(c);
	if (r)
		compare_free(c);
	else
		*ret_compare = c;
	return r;
}

void compare_free(struct compare *c)
{
	if (!c)
		return;
	claims_free(&c->claims);
	timeline_free(c->timeline);
	vec_free(&c->named);
	unnamed_free(&c->callchain);
	vec_free(&c->threads);
	vec_free(&c->cells);
	hashmap_free(&c->thread_of);
	trace_place_free(&c->place);
	hashmap_free(&c->cell_of);
	free(c);
}

pid_t compare_pid(const struct compare *c)
{
	return c->place.pid;
}

static bool next_of(void *ctx, uint64_t before_ns, struct unnamed_stack *ret_stack)
{
	struct compare *c = ctx;

	while (c->next < c->claims.v.len && c->claims.v.v[c->next].time_ns < before_ns) {
		const struct claims_one *s = &c->claims.v.v[c->next++];

		/* Without memory for its stack, the sample is not named. */
		if (unnamed_make(&c->callchain, 0, intern_text(&c->claims.stacks, s->stack),
				 intern_len(&c->claims.stacks, s->stack),
				 c->claims.head.pointer_bytes)) {
			c->totals.left_out++;
			continue;
		}
		*ret_stack = (struct unnamed_stack){.number = c->next - 1,
						    .tid = trace_place_tid(&c->place, s->tid),
						    .time_ns = s->time_ns,
						    .callchain = c->callchain.words.v,
						    .ncallchain = c->callchain.words.len};
		return true;
	}
	return false;
}

/* Without the runtime's poll for suspension, which is above what the thread did. */
static uint32_t without_poll(const struct compare *c, uint32_t stack)
{
	while (stack != PROFILE_STACK_EMPTY) {
		uint32_t name = profile_frame_of(c->profile, profile_stack_frame(c->profile, stack))
					->perf_name;
		uint32_t parent = profile_stack_parent(c->profile, stack);

		if (name == PROFILE_NONE || parent == PROFILE_STACK_EMPTY ||
		    !claims_is_poll(profile_text_of(c->profile, name, NULL)))
			break;
		stack = parent;
	}
	return stack;
}

static void name_of(void *ctx, uint64_t number, uint32_t thread, uint32_t stack)
{
	struct compare *c = ctx;

	c->named.v[number] = (struct compare_named){thread, without_poll(c, stack)};
}

struct unnamed_source compare_source(struct compare *c)
{
	return (struct unnamed_source){
		.pid = c->place.pid, .next = next_of, .name = name_of, .ctx = c};
}

/* Weights of a forged recording may be too large. */
static uint64_t sum(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

static int add_cell(struct compare *c, enum compare_part part, uint32_t thread, uint32_t stack,
		    uint64_t weight)
{
	struct compare_cell cell = {.thread = thread, .stack = stack, .part = (uint8_t)part};
	uint32_t *index;
	int fresh, r;

	if (!weight)
		return 0;
	/* If there are more than 2^29 threads, some share cells. */
	r = hashmap_entry(&c->cell_of,
			  (uint64_t)stack << 32 | (uint64_t)(thread & 0x1fffffff) << 3 | part,
			  (uint32_t)c->cells.len, &index, &fresh);
	if (!r && fresh)
		r = vec_push(&c->cells, cell);
	if (!r)
		c->cells.v[*index].weight = sum(c->cells.v[*index].weight, weight);
	return r;
}

/* The sampled thread of a sample of the recording; NULL: another one. */
static struct compare_thread *thread_of_sample(struct compare *c,
					       const struct profile_sample *sample)
{
	const struct profile_thread *t = profile_thread_of(c->profile, sample->thread);
	struct compare_thread *thread = t->pid == c->place.pid ? known_thread(c, t->tid) : NULL;

	if (thread)
		thread->thread = sample->thread;
	return thread;
}

int compare_take_cpu(struct compare *c, const struct profile_sample *sample)
{
	struct compare_thread *thread = thread_of_sample(c, sample);

	if (!thread || sample->time_ns < c->totals.from_ns || sample->time_ns > c->totals.to_ns)
		return 0;
	thread->cpu_weight = sum(thread->cpu_weight, sample->weight);
	return add_cell(c, COMPARE_ON_CPU, sample->thread, sample->stack, sample->weight);
}

int compare_take_wait(struct compare *c, const struct profile_sample *sample,
		      const struct timeline_wait *wait)
{
	const struct profile_thread *t = profile_thread_of(c->profile, sample->thread);

	if (t->pid != c->place.pid)
		return 0;
	int r = timeline_add_wait(c->timeline, t->tid, wait);

	if (r || !thread_of_sample(c, sample))
		return r;
	uint64_t from = wait->begin_ns > c->totals.from_ns ? wait->begin_ns : c->totals.from_ns,
		 to = wait->end_ns < c->totals.to_ns ? wait->end_ns : c->totals.to_ns,
		 woken = wait->end_ns - wait->runnable_ns;

	if (from >= to)
		return 0;
	if (woken > from)
		r = add_cell(c, COMPARE_BLOCKED, sample->thread, sample->stack,
			     (woken < to ? woken : to) - from);
	if (!r && woken < to)
		r = add_cell(c, COMPARE_RUNNABLE, sample->thread, sample->stack,
			     to - (woken > from ? woken : from));
	return r;
}

int compare_take_life(struct compare *c, int32_t pid, int32_t tid, uint64_t begin_ns,
		      uint64_t end_ns, bool known)
{
	struct compare_thread *thread = known_thread(c, tid);

	if (pid != c->place.pid)
		return 0;
	if (!known) {
		if (thread)
			thread->is_uncertain = true;
		return 0;
	}
	return timeline_add_life(c->timeline, tid, begin_ns, end_ns);
}

int compare_take_unknown(struct compare *c, int32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	return known_thread(c, tid) ? timeline_add_unknown(c->timeline, tid, begin_ns, end_ns) : 0;
}

/*
 * When the threads were last undisturbed before a round: when the sampler's thread was woken. On
 * its CPU it then displaced another thread, and stopped all. The kernel notes that a thread leaves
 * its CPU some microseconds before it notes that another one gets it, because it copies the stack
 * in between.
 */
static uint64_t undisturbed(const struct compare *c, const struct timeline_span *round)
{
	struct timeline_wait sleep;

	if (!timeline_last_wait(c->timeline, c->sampler, round->begin_ns, &sleep) ||
	    sleep.end_ns + COMPARE_WAKE_NS < round->begin_ns)
		return round->begin_ns;
	uint64_t woken = sleep.end_ns - sleep.runnable_ns,
		 latest = sleep.end_ns - COMPARE_SWITCH_NS,
		 earliest = sleep.end_ns - COMPARE_RUNNABLE_NS;

	return woken < earliest ? earliest : woken > latest ? latest : woken;
}

static int label_samples(struct compare *c)
{
	int r = 0;

	for (size_t i = 0; i < c->claims.v.len && !r; i++) {
		const struct claims_one *s = &c->claims.v.v[i];
		int32_t tid = trace_place_tid(&c->place, s->tid);
		struct compare_thread *thread = known_thread(c, tid);
		enum timeline_state state = TIMELINE_UNKNOWN;

		if (s->round != CLAIMS_NO_ROUND && thread && !thread->is_uncertain)
			state = timeline_before(c->timeline, tid,
						undisturbed(c, &c->claims.rounds.v[s->round]));
		c->totals.claims[state]++;
		if (!thread)
			continue;
		thread->samples[state]++;
		if (thread->thread == PROFILE_NONE)
			thread->thread = c->named.v[i].thread;
		if (c->named.v[i].stack != PROFILE_NONE)
			r = add_cell(c, COMPARE_CLAIMS + state, c->named.v[i].thread,
				     c->named.v[i].stack, 1);
	}
	return r;
}

static void sum_rounds(struct compare *c)
{
	for (size_t i = 0; i < c->claims.rounds.len; i++) {
		const struct timeline_span *round = &c->claims.rounds.v[i];

		if (round->end_ns > round->begin_ns)
			c->totals.suspended_ns += round->end_ns - round->begin_ns;
	}
	for (size_t i = 0; i < c->threads.len; i++)
		c->totals.stopped_ns +=
			timeline_stopped(c->timeline, c->threads.v[i].tid, c->claims.rounds.v,
					 c->claims.rounds.len, COMPARE_RESUME_NS);
}

static void sum_threads(struct compare *c)
{
	uint64_t sampler[TIMELINE_STATES] = {0};

	for (size_t i = 0; i < c->threads.len; i++) {
		struct compare_thread *t = &c->threads.v[i];

		if (!t->is_uncertain)
			timeline_sum(c->timeline, t->tid, c->totals.from_ns, c->totals.to_ns,
				     t->states);
		for (int s = 0; s < TIMELINE_STATES; s++)
			c->totals.states[s] += t->states[s];
	}
	timeline_sum(c->timeline, c->sampler, c->totals.from_ns, c->totals.to_ns, sampler);
	c->totals.sampler_ns = sampler[TIMELINE_RUNNING];
}

/* Samples of the kernel get their part of the time that their thread ran, which is exact. */
static void scale_cpu(struct compare *c)
{
	for (size_t i = 0; i < c->cells.len; i++) {
		struct compare_cell *cell = &c->cells.v[i];
		const struct compare_thread *t =
			cell->part == COMPARE_ON_CPU
				? known_thread(c, profile_thread_of(c->profile, cell->thread)->tid)
				: NULL;

		if (t && t->cpu_weight && t->states[TIMELINE_RUNNING])
			cell->weight = (uint64_t)((double)cell->weight *
						  (double)t->states[TIMELINE_RUNNING] /
						  (double)t->cpu_weight);
	}
}

int compare_finish(struct compare *c)
{
	timeline_finish(c->timeline);
	int r = label_samples(c);

	if (r)
		return r;
	sum_rounds(c);
	sum_threads(c);
	scale_cpu(c);
	return 0;
}

const struct compare_totals *compare_totals(const struct compare *c)
{
	return &c->totals;
}

const struct compare_cell *compare_cells(const struct compare *c, size_t *ret_n)
{
	*ret_n = c->cells.len;
	return c->cells.v;
}

const struct compare_thread *compare_threads(const struct compare *c, size_t *ret_n)
{
	*ret_n = c->threads.len;
	return c->threads.v;
}
