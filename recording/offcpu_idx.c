#include "recording/offcpu_idx.h"

#include "base/vec.h"
#include "container/memory_left.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const struct idx_file_format format = {"pcoffidx", 2, sizeof(struct offcpu_idx_row),
					      offsetof(struct offcpu_idx_row, check)};

int offcpu_idx_begin(int fd, uint64_t identity, struct idx_file *ret_file)
{
	return idx_file_begin(fd, &format, identity, ret_file);
}

size_t offcpu_idx_put_wait(const struct offcpu_idx_wait *w, struct offcpu_idx_row out[2])
{
	out[0] = (struct offcpu_idx_row){
		.kind = OFFCPU_IDX_WAIT,
		.flags = w->flags,
		.id = w->waker,
		.v = {w->file_off, w->waker_off, w->woken_ns, w->runnable_ns, w->count}};
	if (!w->end_ns)
		return 1;
	out[1] = (struct offcpu_idx_row){.kind = OFFCPU_IDX_WAIT_END, .v = {w->end_ns}};
	return 2;
}

struct offcpu_idx_row offcpu_idx_put_unknown(const struct offcpu_idx_unknown *u)
{
	return (struct offcpu_idx_row){
		.kind = OFFCPU_IDX_UNKNOWN, .id = u->tid, .v = {u->begin_ns, u->end_ns}};
}

void offcpu_idx_put_thread(const struct offcpu_idx_thread *t, struct offcpu_idx_row out[2])
{
	out[0] = (struct offcpu_idx_row){
		.kind = OFFCPU_IDX_THREAD,
		.id = t->tid,
		.v = {t->begin_ns, t->end_ns, t->running_ns, t->blocked_ns, t->runnable_ns}};
	out[1] = (struct offcpu_idx_row){
		.kind = OFFCPU_IDX_THREAD_REST,
		.id = t->pid,
		.v = {t->unknown_ns, t->short_ns, t->short_count, t->no_stack_ns, t->estimated_ns}};
}

struct reading {
	VEC(struct offcpu_idx_wait) waits;
	VEC(struct offcpu_idx_thread) threads;
	VEC(struct offcpu_idx_unknown) unknowns;
	struct offcpu_idx_row thread; /* first row of an unfinished thread; kind 0: none */
	bool is_wait;                 /* the previous row was a wait */
	uint64_t bytes_left;          /* for more waits and threads */
};

static int take_bytes(struct reading *reading, size_t bytes)
{
	if (reading->bytes_left < bytes)
		return -ENOSPC;
	reading->bytes_left -= bytes;
	return 0;
}

static bool are_times(const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] > OFFCPU_IDX_NS_MAX)
			return false;
	return true;
}

static int add_wait(struct reading *reading, const struct offcpu_idx_row *row)
{
	const struct offcpu_idx_wait wait = {.file_off = row->v[0],
					     .waker_off = row->v[1],
					     .woken_ns = row->v[2],
					     .runnable_ns = row->v[3],
					     .count = row->v[4],
					     .waker = row->id,
					     .flags = row->flags};

	if (!wait.file_off || wait.waker_off >= wait.file_off || wait.waker < 0 ||
	    row->flags & ~OFFCPU_IDX_FLAGS || !are_times(row->v + 2, 3))
		return -EBADMSG;
	int r = take_bytes(reading, sizeof(wait));

	return r ? r : vec_push(&reading->waits, wait);
}

static int add_end(struct reading *reading, const struct offcpu_idx_row *row)
{
	if (!row->v[0] || row->v[0] > OFFCPU_IDX_NS_MAX || row->v[1] || row->v[2] || row->v[3] ||
	    row->v[4] || row->id || row->flags)
		return -EBADMSG;
	reading->waits.v[reading->waits.len - 1].end_ns = row->v[0];
	return 0;
}

static int add_thread(struct reading *reading, const struct offcpu_idx_row *row)
{
	const struct offcpu_idx_row *first = &reading->thread;
	const struct offcpu_idx_thread thread = {.tid = first->id,
						 .pid = row->id,
						 .begin_ns = first->v[0],
						 .end_ns = first->v[1],
						 .running_ns = first->v[2],
						 .blocked_ns = first->v[3],
						 .runnable_ns = first->v[4],
						 .unknown_ns = row->v[0],
						 .short_ns = row->v[1],
						 .short_count = row->v[2],
						 .no_stack_ns = row->v[3],
						 .estimated_ns = row->v[4]};

	if (thread.tid <= 0 || thread.pid < 0 || first->flags || row->flags ||
	    thread.begin_ns > thread.end_ns || !are_times(first->v, 5) || !are_times(row->v, 5))
		return -EBADMSG;
	reading->thread.kind = 0;
	int r = take_bytes(reading, sizeof(thread));

	return r ? r : vec_push(&reading->threads, thread);
}

static int add_unknown(struct reading *reading, const struct offcpu_idx_row *row)
{
	const struct offcpu_idx_unknown unknown = {
		.tid = row->id, .begin_ns = row->v[0], .end_ns = row->v[1]};

	if (unknown.tid <= 0 || row->flags || unknown.begin_ns > unknown.end_ns || row->v[2] ||
	    row->v[3] || row->v[4] || !are_times(row->v, 2))
		return -EBADMSG;
	int r = take_bytes(reading, sizeof(unknown));

	return r ? r : vec_push(&reading->unknowns, unknown);
}

static int add_row(void *ctx, const void *at)
{
	struct reading *reading = ctx;
	bool behind_wait = reading->is_wait;
	struct offcpu_idx_row row;

	memcpy(&row, at, sizeof(row));
	if ((row.kind == OFFCPU_IDX_THREAD_REST) != (reading->thread.kind != 0))
		return -EBADMSG;
	reading->is_wait = row.kind == OFFCPU_IDX_WAIT;
	switch (row.kind) {
	case OFFCPU_IDX_WAIT:
		return add_wait(reading, &row);
	case OFFCPU_IDX_WAIT_END:
		return behind_wait ? add_end(reading, &row) : -EBADMSG;
	case OFFCPU_IDX_UNKNOWN:
		return add_unknown(reading, &row);
	case OFFCPU_IDX_THREAD:
		reading->thread = row;
		return 0;
	case OFFCPU_IDX_THREAD_REST:
		return add_thread(reading, &row);
	default:
		return -EBADMSG;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct offcpu_idx_wait *x = a, *y = b;

	return x->file_off < y->file_off ? -1 : x->file_off > y->file_off;
}

static int by_thread(const void *a, const void *b)
{
	const struct offcpu_idx_thread *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

int offcpu_idx_read(int fd, struct offcpu_idx *ret_idx, struct parse_error *err)
{
	return offcpu_idx_read_within(fd, memory_left(), ret_idx, err);
}

int offcpu_idx_read_within(int fd, uint64_t memory, struct offcpu_idx *ret_idx,
			   struct parse_error *err)
{
	struct reading reading = {.bytes_left = IDX_FILE_BYTES(memory)};
	struct idx_file_state file = {0};
	int r = idx_file_read(fd, &format, add_row, &reading, &file, err);
	struct offcpu_idx idx = {.waits = reading.waits.v,
				 .nwaits = reading.waits.len,
				 .threads = reading.threads.v,
				 .nthreads = reading.threads.len,
				 .unknowns = reading.unknowns.v,
				 .nunknowns = reading.unknowns.len,
				 .file = file};

	if (r) {
		offcpu_idx_free(&idx);
		return r;
	}
	if (idx.nwaits)
		qsort(idx.waits, idx.nwaits, sizeof(*idx.waits), by_place);
	if (idx.nthreads)
		qsort(idx.threads, idx.nthreads, sizeof(*idx.threads), by_thread);
	*ret_idx = idx;
	return 0;
}

void offcpu_idx_free(struct offcpu_idx *idx)
{
	free(idx->waits);
	free(idx->threads);
	free(idx->unknowns);
	*idx = (struct offcpu_idx){0};
}

const struct offcpu_idx_wait *offcpu_idx_find(const struct offcpu_idx *idx, uint64_t file_off)
{
	const struct offcpu_idx_wait key = {.file_off = file_off};

	return idx->nwaits ? bsearch(&key, idx->waits, idx->nwaits, sizeof(key), by_place) : NULL;
}
