/* Puts records into the order of their times, by rounds. */
#include "recording/perfdata_impl.h"

#include <errno.h>
#include <string.h>

/*
 * perf writes one ring after another, each in the order of time, and FINISHED_ROUND after all of
 * them. A record can be older than records of a later ring in the same round. But it is never older
 * than the newest record of the round before the last. So a FINISHED_ROUND releases all records up
 * to the newest one at the previous FINISHED_ROUND. Source: tools/perf/util/ordered-events.c.
 *
 * The queue consists of a few ascending runs, so merging neighbours is nearly linear. Records with
 * equal times stay in the order of the file.
 */

int perfdata_queue_add(struct perfdata *d, const struct perfdata_raw *raw, uint64_t time_ns)
{
	struct perfdata_queue *q = &d->queue;
	size_t n = q->entries.len;
	struct perfdata_entry e = {
		.time_ns = time_ns,
		.chunk = raw->chunk,
		.file_off = raw->file_off,
		.offset = (uint32_t)(raw->bytes - raw->chunk->bytes),
		.size = raw->size,
	};

	if (time_ns < q->handed_ns)
		d->stats.out_of_order++;
	if ((!n || time_ns < q->entries.v[n - 1].time_ns) && vec_push(&q->runs, (uint32_t)n))
		return -ENOMEM;
	if (vec_push(&q->entries, e))
		return -ENOMEM;
	raw->chunk->refs++;
	if (!n || time_ns > q->newest_ns)
		q->newest_ns = time_ns;
	return 0;
}

static void perfdata_merge_runs(const struct perfdata_entry *a, const struct perfdata_entry *a_end,
				const struct perfdata_entry *b, const struct perfdata_entry *b_end,
				struct perfdata_entry *out)
{
	while (a < a_end && b < b_end)
		*out++ = b->time_ns < a->time_ns ? *b++ : *a++;
	memcpy(out, a, (size_t)(a_end - a) * sizeof(*a));
	out += a_end - a;
	memcpy(out, b, (size_t)(b_end - b) * sizeof(*b));
}

/* Merges neighbouring runs in one pass, from entries to merge_buffer. */
static void perfdata_merge_pass(struct perfdata_queue *q)
{
	const struct perfdata_entry *v = q->entries.v;
	size_t n = q->entries.len, nruns = q->runs.len, out = 0;

	for (size_t i = 0; i < nruns; i += 2) {
		size_t a = q->runs.v[i];
		size_t b = i + 1 < nruns ? q->runs.v[i + 1] : n;
		size_t end = i + 2 < nruns ? q->runs.v[i + 2] : n;

		perfdata_merge_runs(v + a, v + b, v + b, v + end, q->merge_buffer.v + a);
		q->runs.v[out++] = (uint32_t)a;
	}
	q->runs.len = out;
}

static int perfdata_queue_sort(struct perfdata_queue *q)
{
	if (q->runs.len <= 1)
		return 0;
	if (q->merge_buffer.cap < q->entries.len &&
	    vec_grow((void **)&q->merge_buffer.v, &q->merge_buffer.cap, sizeof(*q->merge_buffer.v),
		     q->entries.cap))
		return -ENOMEM;
	while (q->runs.len > 1) {
		perfdata_merge_pass(q);
		struct perfdata_entry *v = q->entries.v;
		size_t cap = q->entries.cap;

		q->entries.v = q->merge_buffer.v;
		q->entries.cap = q->merge_buffer.cap;
		q->merge_buffer.v = v;
		q->merge_buffer.cap = cap;
	}
	return 0;
}

void perfdata_queue_compact(struct perfdata_queue *q)
{
	size_t left = q->entries.len - q->at;

	if (!q->at)
		return;
	memmove(q->entries.v, q->entries.v + q->at, left * sizeof(*q->entries.v));
	q->entries.len = left;
	q->at = q->due = 0;
	q->runs.len = left ? 1 : 0;
}

int perfdata_queue_round(struct perfdata_queue *q)
{
	size_t lo = 0, hi = q->entries.len;
	int r = perfdata_queue_sort(q);

	if (r)
		return r;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (q->entries.v[mid].time_ns <= q->next_flush_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	q->due = lo;
	q->next_flush_ns = q->newest_ns;
	return 0;
}

int perfdata_queue_flush(struct perfdata_queue *q, bool half)
{
	int r = perfdata_queue_sort(q);

	if (r)
		return r;
	q->due = half ? (q->entries.len + 1) / 2 : q->entries.len;
	return 0;
}

bool perfdata_queue_full(const struct perfdata *d)
{
	return d->queue.entries.len >= d->queue.max ||
	       (d->queue.entries.len &&
		d->pool.held_bytes > d->pool.held_max + 4 * d->pool.chunk_bytes);
}

void perfdata_queue_free(struct perfdata *d)
{
	struct perfdata_queue *q = &d->queue;

	for (size_t i = q->at; i < q->entries.len; i++)
		perfdata_chunk_put(&d->pool, q->entries.v[i].chunk);
	vec_free(&q->entries);
	vec_free(&q->merge_buffer);
	vec_free(&q->runs);
}
