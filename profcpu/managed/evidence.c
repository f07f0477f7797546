#include "profcpu/managed/evidence.h"

#include "base/clock.h"

#include <stdlib.h>

/* A thread may go on before the runtime has sent the event that the method is compiled. */
#define EVIDENCE_JIT_BEFORE_NS NS_PER_MS
/* The search gives up after so many intervals that end in a time and take less than half of it. */
#define EVIDENCE_STEPS_MAX 64

void evidence_free(struct evidence *e)
{
	for (unsigned k = 0; k < EVIDENCE_KINDS; k++)
		vec_free(&e->kinds[k]);
	vec_free(&e->compiled);
}

int evidence_add(struct evidence *e, enum evidence_kind kind,
		 const struct evidence_interval *interval)
{
	int r = vec_push(&e->kinds[kind], *interval);

	return r || kind != EVIDENCE_JIT ? r : vec_push(&e->compiled, *interval);
}

static int by_tid_and_end(const void *a, const void *b)
{
	const struct evidence_interval *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static int by_end(const void *a, const void *b)
{
	const struct evidence_interval *x = a, *y = b;

	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* Joins the times in which the pool had too few threads. */
static void join(struct evidence *e)
{
	struct evidence_interval *v = e->kinds[EVIDENCE_STARVATION].v;
	size_t n = 0;

	for (size_t i = 0; i < e->kinds[EVIDENCE_STARVATION].len; i++) {
		if (n && v[i].begin_ns <= v[n - 1].end_ns)
			v[n - 1].end_ns = v[i].end_ns;
		else
			v[n++] = v[i];
	}
	e->kinds[EVIDENCE_STARVATION].len = n;
}

void evidence_sort(struct evidence *e)
{
	for (unsigned k = 0; k < EVIDENCE_KINDS; k++)
		if (e->kinds[k].len)
			qsort(e->kinds[k].v, e->kinds[k].len, sizeof(*e->kinds[k].v),
			      by_tid_and_end);
	if (e->compiled.len)
		qsort(e->compiled.v, e->compiled.len, sizeof(*e->compiled.v), by_end);
	join(e);
}

/* The first of `n` sorted intervals that is not before `key`. */
static size_t first_of(const struct evidence_interval *v, size_t n,
		       const struct evidence_interval *key,
		       int (*compare)(const void *, const void *))
{
	size_t from = 0;

	while (from < n) {
		size_t middle = from + (n - from) / 2;

		if (compare(&v[middle], key) < 0)
			from = middle + 1;
		else
			n = middle;
	}
	return from;
}

static bool has_half(const struct evidence_interval *i, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t begin = i->begin_ns > begin_ns ? i->begin_ns : begin_ns,
		 end = i->end_ns < end_ns ? i->end_ns : end_ns;

	return (end > begin ? end - begin : 0) * 2 >= end_ns - begin_ns;
}

const struct evidence_interval *evidence_of_half(const struct evidence *e, enum evidence_kind kind,
						 int32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	const struct evidence_interval key = {.tid = tid, .end_ns = begin_ns};
	const struct evidence_interval *v = e->kinds[kind].v;
	size_t n = e->kinds[kind].len, first = first_of(v, n, &key, by_tid_and_end);

	for (size_t i = first; i < n && v[i].tid == tid && i - first < EVIDENCE_STEPS_MAX; i++)
		if (has_half(&v[i], begin_ns, end_ns) && v[i].begin_ns <= end_ns)
			return &v[i];
	return NULL;
}

const struct evidence_interval *evidence_at(const struct evidence *e, enum evidence_kind kind,
					    int32_t tid, uint64_t time_ns)
{
	return evidence_of_half(e, kind, tid, time_ns, time_ns);
}

bool evidence_is_after_compilation(const struct evidence *e, int32_t tid, uint64_t begin_ns,
				   uint64_t end_ns)
{
	const struct evidence_interval key = {.end_ns = begin_ns};
	size_t first = first_of(e->compiled.v, e->compiled.len, &key, by_end);

	for (size_t i = first; i < e->compiled.len && i - first < EVIDENCE_STEPS_MAX; i++) {
		const struct evidence_interval *v = &e->compiled.v[i];

		if (v->end_ns > end_ns + EVIDENCE_JIT_BEFORE_NS)
			break;
		if (v->tid != tid && has_half(v, begin_ns, end_ns))
			return true;
	}
	return false;
}
