#include "profcpu/compare/timeline.h"

#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct timeline_thread {
	VEC(struct timeline_wait) waits;
	VEC(struct timeline_span) lives;
};

struct timeline {
	VEC(struct timeline_thread) threads;
	struct hashmap by_tid;
};

int timeline_new(struct timeline **ret_timeline)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*ret_timeline = t;
	return 0;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->threads.len; i++) {
		vec_free(&t->threads.v[i].waits);
		vec_free(&t->threads.v[i].lives);
	}
	vec_free(&t->threads);
	hashmap_free(&t->by_tid);
	free(t);
}

static const struct timeline_thread *thread_of(const struct timeline *t, int32_t tid)
{
	const uint32_t *index = hashmap_get(&t->by_tid, (uint32_t)tid);

	return index ? &t->threads.v[*index] : NULL;
}

static int make_thread(struct timeline *t, int32_t tid, struct timeline_thread **ret_thread)
{
	uint32_t *index;
	int fresh, r = hashmap_entry(&t->by_tid, (uint32_t)tid, (uint32_t)t->threads.len, &index,
				     &fresh);

	if (!r && fresh)
		r = vec_push(&t->threads, (struct timeline_thread){0});
	if (!r)
		*ret_thread = &t->threads.v[*index];
	return r;
}

int timeline_add_life(struct timeline *t, int32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	const struct timeline_span life = {begin_ns, end_ns};
	struct timeline_thread *thread;
	int r = make_thread(t, tid, &thread);

	if (!r && begin_ns < end_ns)
		r = vec_push(&thread->lives, life);
	return r;
}

int timeline_add_wait(struct timeline *t, int32_t tid, const struct timeline_wait *wait)
{
	struct timeline_thread *thread;
	int r = make_thread(t, tid, &thread);

	if (r || wait->begin_ns >= wait->end_ns)
		return r;
	return vec_push(&thread->waits, *wait);
}

int timeline_add_unknown(struct timeline *t, int32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	const struct timeline_wait unknown = {
		.begin_ns = begin_ns, .end_ns = end_ns, .is_unknown = true};

	return timeline_add_wait(t, tid, &unknown);
}

/* Orders waits and spans, which start with their begin. */
static int by_begin(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Waits of one thread cannot overlap. Forged ones can: what overlaps is left out. */
static void sort_waits(struct timeline_thread *thread)
{
	size_t n = 0;

	if (!thread->waits.len)
		return;
	qsort(thread->waits.v, thread->waits.len, sizeof(*thread->waits.v), by_begin);
	for (size_t i = 0; i < thread->waits.len; i++) {
		struct timeline_wait wait = thread->waits.v[i];

		if (n && wait.begin_ns < thread->waits.v[n - 1].end_ns)
			wait.begin_ns = thread->waits.v[n - 1].end_ns;
		if (wait.begin_ns >= wait.end_ns)
			continue;
		if (wait.runnable_ns > wait.end_ns - wait.begin_ns)
			wait.runnable_ns = wait.end_ns - wait.begin_ns;
		thread->waits.v[n++] = wait;
	}
	thread->waits.len = n;
}

void timeline_finish(struct timeline *t)
{
	for (size_t i = 0; i < t->threads.len; i++) {
		struct timeline_thread *thread = &t->threads.v[i];

		sort_waits(thread);
		if (thread->lives.len)
			qsort(thread->lives.v, thread->lives.len, sizeof(*thread->lives.v),
			      by_begin);
	}
}

/* The number of waits or spans, of `each` bytes, that begin before a time. */
static size_t begun_before(const void *v, size_t n, size_t each, uint64_t ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t begin_ns;

		memcpy(&begin_ns, (const char *)v + middle * each, sizeof(begin_ns));
		if (begin_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t waits_before(const struct timeline_thread *thread, uint64_t ns)
{
	return begun_before(thread->waits.v, thread->waits.len, sizeof(*thread->waits.v), ns);
}

/* Whether the thread lived, and its switches were recorded, just before a time. */
static bool is_known(const struct timeline_thread *thread, uint64_t ns)
{
	size_t n = begun_before(thread->lives.v, thread->lives.len, sizeof(*thread->lives.v), ns);

	return n && ns <= thread->lives.v[n - 1].end_ns;
}

enum timeline_state timeline_before(const struct timeline *t, int32_t tid, uint64_t ns)
{
	const struct timeline_thread *thread = thread_of(t, tid);

	if (!thread || !is_known(thread, ns))
		return TIMELINE_UNKNOWN;
	size_t n = waits_before(thread, ns);
	const struct timeline_wait *wait = n ? &thread->waits.v[n - 1] : NULL;

	if (!wait || ns > wait->end_ns)
		return TIMELINE_RUNNING;
	if (wait->is_unknown)
		return TIMELINE_UNKNOWN;
	return ns > wait->end_ns - wait->runnable_ns ? TIMELINE_RUNNABLE : TIMELINE_BLOCKED;
}

bool timeline_last_wait(const struct timeline *t, int32_t tid, uint64_t ns,
			struct timeline_wait *ret_wait)
{
	const struct timeline_thread *thread = thread_of(t, tid);
	size_t n = thread ? waits_before(thread, ns) : 0;

	/* Only the last of those that begin earlier can end later. */
	if (n && thread->waits.v[n - 1].end_ns > ns)
		n--;
	if (!n || thread->waits.v[n - 1].is_unknown)
		return false;
	*ret_wait = thread->waits.v[n - 1];
	return true;
}

static uint64_t overlap(uint64_t begin, uint64_t end, uint64_t from, uint64_t to)
{
	begin = begin > from ? begin : from;
	end = end < to ? end : to;
	return end > begin ? end - begin : 0;
}

void timeline_sum(const struct timeline *t, int32_t tid, uint64_t from_ns, uint64_t to_ns,
		  uint64_t sums[TIMELINE_STATES])
{
	const struct timeline_thread *thread = thread_of(t, tid);
	uint64_t alive = 0, waited = 0;

	if (!thread || from_ns >= to_ns)
		return;
	for (size_t i = 0; i < thread->lives.len; i++)
		alive += overlap(thread->lives.v[i].begin_ns, thread->lives.v[i].end_ns, from_ns,
				 to_ns);
	size_t i = waits_before(thread, from_ns);

	for (i = i ? i - 1 : 0; i < thread->waits.len && thread->waits.v[i].begin_ns < to_ns; i++) {
		const struct timeline_wait *w = &thread->waits.v[i];
		uint64_t woken = w->end_ns - w->runnable_ns;
		uint64_t blocked = overlap(w->begin_ns, woken, from_ns, to_ns);
		uint64_t runnable = overlap(woken, w->end_ns, from_ns, to_ns);

		sums[w->is_unknown ? TIMELINE_UNKNOWN : TIMELINE_BLOCKED] += blocked;
		sums[TIMELINE_RUNNABLE] += runnable;
		waited += blocked + runnable;
	}
	sums[TIMELINE_RUNNING] += alive > waited ? alive - waited : 0;
}

uint64_t timeline_stopped(const struct timeline *t, int32_t tid, const struct timeline_span *stops,
			  size_t n, uint64_t resume_ns)
{
	const struct timeline_thread *thread = thread_of(t, tid);
	uint64_t sum = 0;

	for (size_t i = 0; thread && i < thread->waits.len; i++) {
		const struct timeline_wait *w = &thread->waits.v[i];
		size_t k = begun_before(stops, n, sizeof(*stops), w->begin_ns + 1);
		uint64_t blocked = w->end_ns - w->runnable_ns - w->begin_ns;

		if (k && !w->is_unknown && w->begin_ns < stops[k - 1].end_ns &&
		    w->begin_ns + blocked <= stops[k - 1].end_ns + resume_ns)
			sum += blocked;
	}
	return sum;
}
