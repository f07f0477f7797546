#include "profcpu/record/unwind_impl.h"

#include "base/clock.h"
#include "container/memory_left.h"
#include "recording/perfdata_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)256 << 10)
#define BLOCKS_KEPT 4                    /* for the next round */
#define DEFERRED_MIN ((size_t)128 << 10) /* larger than any record */
#define COPY_SLACK 64   /* the kernel may copy up to this many bytes less than requested */
#define SAMPLE_PARTS 4  /* least cost of a sample, in units of other records */
#define FRAMES_MAX 8000 /* frames that fit into a record */

int keep_stacks_parse(const char *text, enum keep_stacks *ret_keep)
{
	static const char *const words[] = {"none", "failed", "all"};

	for (int i = 0; i <= KEEP_STACKS_ALL; i++)
		if (!strcmp(text, words[i])) {
			*ret_keep = (enum keep_stacks)i;
			return 0;
		}
	return -EINVAL;
}

int record_unwind_new(const struct record_unwind_options *o, struct record_unwind **ret_unwind)
{
	struct unwinder_options unwinder = {
		.opener = o->opener, .frames_max = o->frames_max, .memory = o->memory};
	struct perf_event_attr *attrs = calloc(o->nopened, sizeof(*attrs));
	struct record_unwind *u = calloc(1, sizeof(*u));
	struct record_rows *rows = NULL;
	int r = record_rows_new(o->idx_fd, o->offcpu ? o->offcpu_idx_fd : -1, o->identity, &rows);

	if (u)
		u->rows = rows;
	else
		record_rows_free(rows);
	if (!u || !attrs)
		r = -ENOMEM;
	if (!unwinder.frames_max || unwinder.frames_max > FRAMES_MAX)
		unwinder.frames_max = FRAMES_MAX;
	for (size_t i = 0; i < o->nopened && !r; i++)
		attrs[i] = o->opened[i].attr;
	if (!r) {
		u->keep = o->keep;
		u->keep_32bit = o->keep_32bit;
		u->copy = (struct copy_size){.bytes = o->stack_bytes, .fixed = o->stack_fixed};
		u->self = getpid();
		u->ordered = true;
		u->deferred_max = memory_left_eighth(o->memory, RECORD_UNWIND_DEFERRED_BYTES);
		if (u->deferred_max < DEFERRED_MIN)
			u->deferred_max = DEFERRED_MIN;
		r = perfdata_records_new(attrs, o->nopened, &u->records);
	}
	for (size_t i = 0; i < o->nopened && !r; i++)
		for (size_t k = 0; k < o->opened[i].nids && !r; k++)
			r = perfdata_records_add_id(u->records, i, o->opened[i].ids[k]);
	if (!r && o->read_code)
		r = code_reader_new(o->memory, &u->reader);
	if (!r && u->reader) {
		unwinder.request_code = code_reader_request;
		unwinder.ctx = u->reader;
	}
	if (!r)
		r = unwinder_new(&unwinder, &u->unwinder);
	if (!r && o->offcpu)
		r = record_unwind_begin_offcpu(u, o);
	free(attrs);
	if (r)
		record_unwind_free(u);
	else
		*ret_unwind = u;
	return r;
}

void record_unwind_free(struct record_unwind *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->blocks.len; i++)
		free(u->blocks.v[i]);
	vec_free(&u->blocks);
	vec_free(&u->items);
	record_rows_free(u->rows);
	waker_processes_free(u->wakers);
	perfdata_close(u->records);
	record_blocked_free(u->blocked);
	code_reader_free(u->reader);
	unwinder_free(u->unwinder);
	free(u->deferred);
	free(u);
}

struct perf_event_attr record_unwind_attr(const struct record_unwind *u,
					  const struct perf_event_attr *opened)
{
	struct perf_event_attr attr = *opened;

	if (u->keep != KEEP_STACKS_NONE || u->keep_32bit)
		return attr;
	attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr.sample_regs_user = 0;
	attr.sample_stack_user = 0;
	return attr;
}

int record_unwind_event_id(struct record_unwind *u, size_t event, uint64_t id)
{
	return perfdata_records_add_id(u->records, event, id);
}

int record_unwind_switches_id(struct record_unwind *u, uint64_t id)
{
	return perfdata_records_add_id(u->records, u->switches, id);
}

uint32_t record_unwind_stack_bytes(const struct record_unwind *u)
{
	return u->copy.bytes;
}

void record_unwind_keep_stack_bytes(struct record_unwind *u, uint32_t bytes, bool limited)
{
	u->copy_limited = limited;
	u->copy = (struct copy_size){.bytes = bytes, .fixed = true};
}

struct record_unwind_stats record_unwind_stats(const struct record_unwind *u)
{
	struct record_unwind_stats stats = u->stats;

	stats.unwinder = unwinder_stats(u->unwinder);
	if (u->blocked) {
		struct record_blocked_stats blocked = record_blocked_stats(u->blocked);

		stats.refused = blocked.refused;
		stats.dropped = blocked.dropped;
	}
	for (int i = 0; i < LIMITS; i++)
		stats.limits.cost[i] += stats.unwinder.limits.cost[i];
	if (u->reader)
		stats.limits.cost[LIMIT_CODE_LOOKUPS] = code_reader_left_out(u->reader);
	if (u->wakers)
		stats.limits.cost[LIMIT_WAKER_PROCESSES] = waker_processes_left_out(u->wakers);
	return stats;
}

/* Room that stays valid until the round is written; record_unwind_use_room takes part of it. */
unsigned char *record_unwind_room(struct record_unwind *u, size_t bytes)
{
	if (!u->blocks.len || u->used + bytes > BLOCK_BYTES) {
		u->block += u->blocks.len > 0;
		u->used = 0;
		if (u->block == u->blocks.len) {
			unsigned char *block = malloc(BLOCK_BYTES);

			if (!block || vec_push(&u->blocks, block)) {
				free(block);
				return NULL;
			}
		}
	}
	return u->blocks.v[u->block] + u->used;
}

void record_unwind_use_room(struct record_unwind *u, size_t bytes)
{
	u->used += bytes;
}

static int add_item(struct record_unwind *u, const struct perf_event_header *header)
{
	struct unwind_item item = {perfdata_records_time(u->records, header), header};

	if (u->items.len && u->items.v[u->items.len - 1].time_ns > item.time_ns)
		u->ordered = false;
	return vec_push(&u->items, item);
}

/* Adds the rest of a record that crosses the end of its ring. Bytes of data used, or -ENOMEM. */
static ssize_t add_rest(struct record_unwind *u, const unsigned char *data, size_t len)
{
	const struct perf_event_header *header = (const void *)u->part;
	size_t need = header->size - u->part_bytes, n = need < len ? need : len;

	memcpy(u->part + u->part_bytes, data, n);
	u->part_bytes += n;
	if (u->part_bytes < header->size)
		return (ssize_t)n;
	record_unwind_use_room(u, header->size);
	u->part = NULL;
	return add_item(u, header) ? -ENOMEM : (ssize_t)n;
}

int record_unwind_records(struct record_unwind *u, const void *data, size_t len)
{
	const unsigned char *at = data, *end = at + len;

	if (u->part) {
		ssize_t n = add_rest(u, at, len);

		if (n < 0)
			return (int)n;
		at += n;
	}
	while (end - at >= (ptrdiff_t)sizeof(struct perf_event_header)) {
		const struct perf_event_header *header = (const void *)at;

		if (header->size < sizeof(*header)) {
			u->stats.damaged++;
			return 0;
		}
		if (header->size > end - at) {
			u->part = record_unwind_room(u, (size_t)UINT16_MAX + 1);
			if (!u->part)
				return -ENOMEM;
			u->part_bytes = (size_t)(end - at);
			memcpy(u->part, at, u->part_bytes);
			return 0;
		}
		if (add_item(u, header))
			return -ENOMEM;
		at += header->size;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct unwind_item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	/* An arbitrary but stable order. */
	return x->header < y->header ? -1 : x->header > y->header;
}

/* Whether a sample is unwound afterwards, because its program has 32 bits. */
static bool is_for_later(const struct record_unwind *u, const struct perfdata_record *record)
{
	return u->keep_32bit && record->sample.user_abi == PERF_SAMPLE_REGS_ABI_32 &&
	       record->sample.user_stack;
}

static enum perfdata_stack stack_of(const struct record_unwind *u,
				    const struct perfdata_record *record,
				    const struct unwound *unwound)
{
	if (is_for_later(u, record) || u->keep == KEEP_STACKS_ALL)
		return PERFDATA_STACK_KEPT;
	if (u->keep == KEEP_STACKS_NONE)
		return u->keep_32bit ? PERFDATA_STACK_EMPTY : PERFDATA_STACK_OMITTED;
	return unwound->grade == UNWIND_GUESSED || unwound->grade == UNWIND_TRUNCATED
		       ? PERFDATA_STACK_KEPT
		       : PERFDATA_STACK_EMPTY;
}

/* Writes a record. After a write error, later records are still accounted for. */
void record_unwind_put(struct record_unwind *u, struct perfdata_writer *w, const void *data,
		       size_t bytes)
{
	int r = u->error ? 0 : perfdata_writer_records(w, data, bytes);

	if (r)
		u->error = r;
}

static int write_sample(struct record_unwind *u, struct perfdata_writer *w,
			const struct perfdata_record *record, const struct unwound *unwound)
{
	unsigned char *out = record_unwind_room(u, PERFDATA_RECORD_BYTES_MAX_OUT);
	/* Readers append what they unwind to the callchain, so leave its user part out. */
	size_t bytes, n = is_for_later(u, record)
				  ? unwinder_kernel_words(unwound->callchain, unwound->ncallchain)
				  : unwound->ncallchain;
	enum perfdata_stack stack = stack_of(u, record, unwound);

	if (!out || record_rows_sample(u->rows, perfdata_writer_next(w), unwound))
		return -ENOMEM;
	bytes = perfdata_records_rewrite(record, unwound->callchain, n, stack, out);
	/* The callchain does not fit beside the kept stack, so leave the stack out. */
	if (!bytes)
		bytes = perfdata_records_rewrite(
			record, unwound->callchain, unwound->ncallchain,
			stack ? PERFDATA_STACK_EMPTY : PERFDATA_STACK_OMITTED, out);
	if (!bytes) {
		u->stats.damaged++;
		return 0;
	}
	record_unwind_use_room(u, bytes);
	record_unwind_put(u, w, out, bytes);
	return 0;
}

struct unwinder_sample record_unwind_sample(const struct perfdata_record *record, bool last)
{
	return (struct unwinder_sample){
		.pid = record->pid,
		.tid = record->tid,
		.time_ns = record->time_ns,
		.regs = record->sample.user_regs,
		.regs_mask = ARCH_PERF_REGS,
		.abi = record->sample.user_abi,
		.stack = record->sample.user_stack,
		.stack_bytes = record->sample.user_stack_bytes,
		.callchain = record->sample.callchain,
		.ncallchain = record->sample.ncallchain,
		.last = last,
	};
}

/* Unwinds a sample and writes it. 0; -EAGAIN: defer it; -errno. */
int record_unwind_take_sample(struct record_unwind *u, struct perfdata_writer *w,
			      const struct perfdata_record *record, bool last)
{
	struct unwound unwound;

	if (!record->sample.callchain) {
		u->stats.damaged++;
		return 0;
	}
	struct unwinder_sample sample = record_unwind_sample(record, last);
	int r = unwinder_sample(u->unwinder, &sample, &unwound);

	if (!r && u->copy_limited && unwound.edge)
		u->stats.limits.cost[LIMIT_STACK_COPIES]++;
	/* A copy much shorter than requested has the whole stack, so a larger one is useless. */
	bool is_full = sample.stack_bytes + COPY_SLACK >= u->copy.bytes;

	if (!r && unwound.grade != UNWIND_NO_STACK && record->pid && record->pid != u->self)
		copy_size_note(&u->copy, unwound.reached, unwound.edge && is_full);
	else if (!r && is_for_later(u, record))
		copy_size_note(&u->copy, (uint32_t)sample.stack_bytes, is_full);
	return r ? r : write_sample(u, w, record, &unwound);
}

/* Applies a record that is no sample. */
static int take_state(struct record_unwind *u, struct perfdata_writer *w,
		      const struct perfdata_record *record)
{
	bool other_program = record->type == PERF_RECORD_COMM && record->comm.exec;
	/* Deferred samples belong to the old program. */
	int r = other_program && u->ndeferred ? record_unwind_retry(u, w, true) : 0;

	if (!r)
		r = unwinder_apply(u->unwinder, record);
	if (!r && u->wakers &&
	    (record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_COMM))
		r = waker_processes_know(u->wakers, record->pid);
	if (!r && u->reader && unwinder_forgets_code(u->unwinder, record))
		code_reader_forget(u->reader, record->pid);
	return r;
}

int record_unwind_take_other(struct record_unwind *u, struct perfdata_writer *w,
			     const struct perf_event_header *header,
			     const struct perfdata_record *record)
{
	int r = record ? take_state(u, w, record) : 0;

	if (!r)
		record_unwind_put(u, w, header, header->size);
	return r;
}

/* *ret_taken: the record is one of switches and wakings. */
static int take_item(struct record_unwind *u, struct perfdata_writer *w,
		     const struct perf_event_header *header, bool *ret_taken)
{
	struct perfdata_record record;
	bool damaged = perfdata_records_parse(u->records, header, &record);
	int r = u->offcpu && !damaged ? record_unwind_take_offcpu(u, &record) : 0;

	*ret_taken = r != 0;
	if (r)
		return r < 0 ? r : 0;
	if (header->type != PERF_RECORD_SAMPLE)
		return record_unwind_take_other(u, w, header, damaged ? NULL : &record);
	if (damaged) {
		u->stats.damaged++;
		return 0;
	}
	r = record_unwind_take_sample(u, w, &record, false);
	return r == -EAGAIN ? record_unwind_defer(u, w, header) : r;
}

static int take_items(struct record_unwind *u, struct perfdata_writer *w)
{
	uint64_t begin_ns = u->offcpu ? clock_thread_ns() : 0, parts = 0, switch_parts = 0;
	int r = 0;

	if (!u->ordered)
		qsort(u->items.v, u->items.len, sizeof(*u->items.v), by_time);
	for (size_t i = 0; i < u->items.len && !r; i++) {
		const struct perf_event_header *header = u->items.v[i].header;
		int part = header->type == PERF_RECORD_SAMPLE ? SAMPLE_PARTS : 1;
		bool taken;

		r = take_item(u, w, header, &taken);
		parts += (uint64_t)part;
		switch_parts += taken ? (uint64_t)part : 0;
	}
	u->items.len = 0;
	u->ordered = true;
	if (switch_parts)
		u->switches_cpu_ns += (uint64_t)((double)(clock_thread_ns() - begin_ns) *
						 (double)switch_parts / (double)parts);
	return r;
}

uint64_t record_unwind_switches_cpu_ns(const struct record_unwind *u)
{
	return u->switches_cpu_ns;
}

/*
 * Whether the round gets an end mark. Readers keep all records since the last mark but one, so
 * marks must come even if some samples are always deferred. These samples follow the mark, so they
 * must be newer than all records before the last one: they came two rounds after it, or later.
 * Waits are found up to a round late, so then only every second round gets a mark.
 */
static bool is_round(struct record_unwind *u, uint64_t end_ns)
{
	bool first = u->clear_ns == UINT64_MAX;
	bool mark = end_ns || (u->ndeferred ? record_unwind_oldest_ns(u) > u->clear_ns
					    : !first || !u->offcpu);

	if (mark)
		u->clear_ns = UINT64_MAX;
	else if (first)
		u->clear_ns = clock_monotonic_ns();
	return mark;
}

/* Processes all records, even if they cannot be written. */
static int take_round(struct record_unwind *u, struct perfdata_writer *w, uint64_t end_ns)
{
	int r = record_unwind_take_code(u, w);

	if (!r)
		r = record_unwind_take_wakers(u, false);
	if (!r)
		r = take_items(u, w);
	if (!r && end_ns)
		r = record_unwind_take_blocked(u, true);
	if (!r && u->offcpu)
		r = record_unwind_hand_over_waits(u, end_ns);
	if (!r && !end_ns)
		r = record_unwind_take_blocked(u, false);
	return r || !end_ns ? r : record_unwind_take_last(u, w);
}

int record_unwind_round(struct record_unwind *u, struct perfdata_writer *w, uint64_t end_ns)
{
	u->writer = w;
	int r = take_round(u, w, end_ns);
	/* Rows go to the disk before their samples. */
	int rows = u->error ? 0
			    : record_rows_round(u->rows,
						u->offcpu ? record_offcpu_threads(u->offcpu) : 0);

	/* A round ends when no older record can follow. Queued data must be written now in any
	 * case, because blocks and rings are reused. */
	int written = !r && !rows && is_round(u, end_ns) ? perfdata_writer_round(w)
							 : perfdata_writer_flush(w);

	if (!u->error)
		u->error = rows ? rows : written;
	if (end_ns && (rows = record_rows_end(u->rows)) && !u->error)
		u->error = rows;
	while (u->blocks.len > BLOCKS_KEPT)
		free(u->blocks.v[--u->blocks.len]);
	u->block = u->used = 0;
	/* An incomplete record: its ring is damaged. */
	u->stats.damaged += u->part != NULL;
	u->part = NULL;
	return r ? r : u->error;
}
