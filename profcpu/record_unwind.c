#include "profcpu/record_unwind.h"

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "profcpu/code_reader.h"
#include "profcpu/record_rows.h"
#include "profcpu/record_waiting.h"
#include "recording/perfdata_records.h"
#include "sampler/sched_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)256 << 10)
#define COPY_SLACK 64 /* bytes that the kernel may copy less than it was told */
#define LAST_NS (NS_PER_S / 2) /* that answers are waited for at the end */
#define LAST_READ_NS (2 * NS_PER_S) /* that stacks are read at the end, */
#define LAST_STALL_NS (NS_PER_S / 4) /* as long as some come in this time */
#define SAMPLE_PARTS 4 /* as much as other records a sample costs, at least */
#define FRAMES_MAX 8000 /* that a record has room for beside all else */

/* A record of the round, or one that waits. */
struct unwind_item {
	uint64_t time_ns;
	const struct perf_event_header *header;
};

/* A sample that waits, with its record behind it. */
struct unwind_waiting {
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint32_t bytes; /* of the record */
	bool done;
};

struct record_unwind {
	enum keep_stacks keep;
	struct copy_size copy;
	struct unwinder *unwinder;
	struct code_reader *reader; /* NULL: nobody is asked for the code of processes */
	struct perfdata *records; /* takes them apart */
	VEC(struct unwind_item) items;
	bool ordered; /* items are, so far */
	unsigned char *part; /* of a record whose rest is still to come; in a block */
	size_t part_bytes;
	VEC(unsigned char *) blocks; /* of what is written at the end of the round; reused */
	size_t block, used; /* the one in use, and how much of it */
	unsigned char *waiting; /* RECORD_UNWIND_WAITING_BYTES, from first on; NULL: nothing ever waited */
	size_t first, end, nwaiting;
	struct record_rows *rows; /* what goes beside perf.data */
	struct record_offcpu *offcpu; /* borrowed; NULL: switches are not recorded */
	uint32_t switches; /* their event, */
	uint64_t switches_id; /* and one of its ids */
	uint32_t wakings; /* the same of wakings; UINT32_MAX: they are not recorded */
	uint64_t wakings_id;
	uint32_t waking_pid_offset;
	int (*meet)(void *ctx, int32_t pid, int (*take)(void *ctx, const void *data, size_t len), void *take_ctx);
	void *meet_ctx;
	struct hashmap met; /* processes, while some may be met as strangers: what is known of them is in the recording */
	size_t strangers;
	uint64_t offcpu_rounds;
	uint64_t switches_ns; /* CPU time that their records took */
	struct record_waiting *threads_waiting; /* NULL: without switches */
	struct perfdata_writer *writer; /* of the round */
	int error; /* of writing, the first; what comes after it is only counted */
	struct record_unwind_stats stats;
};

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

static int write_wait(void *ctx, const struct perfdata_offcpu *wait, const struct unwound *unwound, const struct offcpu_idx_wait *row);
static int write_thread(void *ctx, const struct offcpu_idx_thread *thread);
static int write_waker(void *ctx, const struct perfdata_offcpu *waker, const struct unwound *unwound, uint64_t *ret_off);

static int ask_waiting(void *ctx, int32_t pid, int32_t tid)
{
	struct record_unwind *u = ctx;

	return record_waiting_ask(u->threads_waiting, pid, tid);
}

static void hurry_waiting(void *ctx)
{
	struct record_unwind *u = ctx;

	record_waiting_now(u->threads_waiting);
}

static int take_offcpu(struct record_unwind *u, const struct record_unwind_options *o)
{
	u->offcpu = o->offcpu;
	u->switches = (uint32_t)o->nopened - (o->wakings ? 2 : 1);
	perfdata_records_strangers(u->records, u->switches);
	u->switches_id = o->opened[u->switches].nids ? o->opened[u->switches].ids[0] : 0;
	u->wakings = o->wakings ? u->switches + 1 : UINT32_MAX;
	u->wakings_id = o->wakings && o->opened[u->wakings].nids ? o->opened[u->wakings].ids[0] : 0;
	u->waking_pid_offset = o->waking_pid_offset;
	u->meet = o->meet;
	u->meet_ctx = o->meet_ctx;
	record_offcpu_to(u->offcpu, &(struct record_offcpu_writer){u, write_wait, write_thread, write_waker, ask_waiting, hurry_waiting});
	return record_waiting_new(o->proc, &u->threads_waiting);
}

int record_unwind_new(const struct record_unwind_options *o, struct record_unwind **ret_unwind)
{
	struct unwinder_options unwinder = {.opener = o->opener, .frames_max = o->frames_max};
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
		u->copy = (struct copy_size){.bytes = o->stack_bytes, .fixed = o->stack_fixed};
		u->ordered = true;
		r = perfdata_records_new(attrs, o->nopened, &u->records);
	}
	for (size_t i = 0; i < o->nopened && !r; i++)
		for (size_t k = 0; k < o->opened[i].nids && !r; k++)
			r = perfdata_records_add_id(u->records, i, o->opened[i].ids[k]);
	if (!r && o->read_code)
		r = code_reader_new(&u->reader);
	if (!r && u->reader) {
		unwinder.ask = code_reader_ask;
		unwinder.ctx = u->reader;
	}
	if (!r)
		r = unwinder_new(&unwinder, &u->unwinder);
	if (!r && o->offcpu)
		r = take_offcpu(u, o);
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
	hashmap_free(&u->met);
	perfdata_close(u->records);
	record_waiting_free(u->threads_waiting);
	code_reader_free(u->reader);
	unwinder_free(u->unwinder);
	free(u->waiting);
	free(u);
}

struct perf_event_attr record_unwind_attr(const struct record_unwind *u, const struct perf_event_attr *opened)
{
	struct perf_event_attr attr = *opened;

	if (u->keep != KEEP_STACKS_NONE)
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

void record_unwind_keep_stack_bytes(struct record_unwind *u, uint32_t bytes)
{
	u->copy = (struct copy_size){.bytes = bytes, .fixed = true};
}

struct record_unwind_stats record_unwind_stats(const struct record_unwind *u)
{
	struct record_unwind_stats stats = u->stats;

	stats.unwinder = unwinder_stats(u->unwinder);
	if (u->threads_waiting) {
		struct record_waiting_stats waiting = record_waiting_stats(u->threads_waiting);

		stats.refused = waiting.refused;
		stats.dropped = waiting.dropped;
	}
	return stats;
}

/* Room that stays where it is until the round has been written; what of it is used is taken by block_take. */
static unsigned char *block_room(struct record_unwind *u, size_t bytes)
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

static void block_take(struct record_unwind *u, size_t bytes)
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

/* The rest of a record that goes over the end of its ring; how many bytes of data that is, or -ENOMEM. */
static ssize_t add_rest(struct record_unwind *u, const unsigned char *data, size_t len)
{
	const struct perf_event_header *header = (const void *)u->part;
	size_t need = header->size - u->part_bytes, n = need < len ? need : len;

	memcpy(u->part + u->part_bytes, data, n);
	u->part_bytes += n;
	if (u->part_bytes < header->size)
		return (ssize_t)n;
	block_take(u, header->size);
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
			u->part = block_room(u, (size_t)UINT16_MAX + 1);
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
	/* As good as any, and the same each time. */
	return x->header < y->header ? -1 : x->header > y->header;
}

static enum perfdata_stack stack_of(const struct record_unwind *u, const struct unwound *unwound)
{
	if (u->keep == KEEP_STACKS_NONE)
		return PERFDATA_STACK_LEFT_OUT;
	if (u->keep == KEEP_STACKS_ALL || unwound->grade == UNWIND_GUESSED || unwound->grade == UNWIND_TRUNCATED)
		return PERFDATA_STACK_KEPT;
	return PERFDATA_STACK_EMPTY;
}

/* A record for perf.data. Once it cannot be written the recording ends, and what came until then is still to be accounted for. */
static void put_record(struct record_unwind *u, struct perfdata_writer *w, const void *data, size_t bytes)
{
	int r = u->error ? 0 : perfdata_writer_records(w, data, bytes);

	if (r)
		u->error = r;
}

static int write_sample(struct record_unwind *u, struct perfdata_writer *w, const struct perfdata_record *record,
			const struct unwound *unwound)
{
	unsigned char *out = block_room(u, PERFDATA_RECORD_BYTES_MAX_OUT);
	size_t bytes;

	if (!out || record_rows_sample(u->rows, perfdata_writer_next(w), unwound))
		return -ENOMEM;
	bytes = perfdata_records_rewrite(record, unwound->callchain, unwound->ncallchain, stack_of(u, unwound), out);
	/* No room beside a stack that is kept. */
	if (!bytes)
		bytes = perfdata_records_rewrite(record, unwound->callchain, unwound->ncallchain,
						 u->keep ? PERFDATA_STACK_EMPTY : PERFDATA_STACK_LEFT_OUT, out);
	if (!bytes) {
		u->stats.damaged++;
		return 0;
	}
	block_take(u, bytes);
	put_record(u, w, out, bytes);
	return 0;
}

static struct unwinder_sample sample_of(const struct perfdata_record *record, bool last)
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

/* Unwinds a sample and writes it. 0; -EAGAIN: it is to wait; -errno. */
static int take_sample(struct record_unwind *u, struct perfdata_writer *w, const struct perf_event_header *header, bool last)
{
	struct perfdata_record record;
	struct unwound unwound;
	int r = perfdata_records_take(u->records, header, &record);

	if (r || !record.sample.callchain) {
		u->stats.damaged++;
		return 0;
	}
	struct unwinder_sample sample = sample_of(&record, last);

	r = unwinder_sample(u->unwinder, &sample, &unwound);
	/* A copy that ends where its memory does would be no longer. */
	if (!r && unwound.grade != UNWIND_NO_STACK)
		copy_size_note(&u->copy, unwound.reached, unwound.edge && sample.stack_bytes + COPY_SLACK >= u->copy.bytes);
	return r ? r : write_sample(u, w, &record, &unwound);
}

static int write_offcpu(struct record_unwind *u, const struct perfdata_offcpu *sample, const struct unwound *unwound)
{
	unsigned char *out = block_room(u, PERFDATA_RECORD_BYTES_MAX_OUT);
	size_t bytes;

	if (!out || record_rows_sample(u->rows, perfdata_writer_next(u->writer), unwound))
		return -ENOMEM;
	bytes = perfdata_offcpu_put(sample, out);
	block_take(u, bytes);
	if (bytes)
		put_record(u, u->writer, out, bytes);
	return 0;
}

static int write_wait(void *ctx, const struct perfdata_offcpu *wait, const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	struct record_unwind *u = ctx;
	struct perfdata_offcpu sample = *wait;
	struct offcpu_idx_wait placed = *row;

	placed.file_off = perfdata_writer_next(u->writer);
	sample.id = u->switches_id;
	return record_rows_wait(u->rows, &placed) ? -ENOMEM : write_offcpu(u, &sample, unwound);
}

static int write_waker(void *ctx, const struct perfdata_offcpu *waker, const struct unwound *unwound, uint64_t *ret_off)
{
	struct record_unwind *u = ctx;
	struct perfdata_offcpu sample = *waker;
	uint64_t file_off = perfdata_writer_next(u->writer);

	sample.id = u->wakings_id;
	int r = write_offcpu(u, &sample, unwound);

	if (!r)
		*ret_off = file_off;
	return r;
}

static int write_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	struct record_unwind *u = ctx;

	return record_rows_thread(u->rows, thread);
}

/* Code that is not known yet is asked for, so that the next time it is; a wait is not long enough to be sure of an answer. */
static int unwind_now(struct record_unwind *u, const struct perfdata_record *record, struct unwound *ret_unwound)
{
	struct unwinder_sample sample = sample_of(record, false);
	int r = unwinder_sample(u->unwinder, &sample, ret_unwound);

	if (r != -EAGAIN)
		return r;
	sample.last = true;
	return unwinder_sample(u->unwinder, &sample, ret_unwound);
}

/* Of a thread that is about to leave its CPU: its stack is kept until its wait is over. */
static int take_stack(struct record_unwind *u, const struct perfdata_record *record)
{
	struct unwound unwound;
	int32_t first_pid;
	int r = 0;

	if (!record->sample.callchain || !record_offcpu_wants(u->offcpu, record->tid))
		return 0;
	if (record->sample.raw && !sched_payload_current(record->sample.raw, record->sample.raw_bytes, &first_pid))
		r = record_offcpu_learn(u->offcpu, first_pid, record->tid);
	if (!r)
		r = unwind_now(u, record, &unwound);
	return r ? r : record_offcpu_stack(u->offcpu, record, &unwound);
}

static int take_other(struct record_unwind *u, struct perfdata_writer *w, const struct perf_event_header *header);

/* Of a process that is no target: into the recording, and to the unwinder. */
static int take_stranger(void *ctx, const void *data, size_t len)
{
	struct record_unwind *u = ctx;
	const unsigned char *at = data, *end = at + len;
	const struct perf_event_header *header;
	int r = 0;

	for (; !r && at < end; at += header->size) {
		header = (const void *)at;
		unsigned char *out = block_room(u, header->size);

		if (!out)
			return -ENOMEM;
		memcpy(out, at, header->size);
		block_take(u, header->size);
		r = take_other(u, u->writer, (const void *)out);
	}
	return r;
}

static int meet_stranger(struct record_unwind *u, const struct perfdata_record *record)
{
	if (!u->meet || record->pid <= 0 || record_offcpu_wants(u->offcpu, record->tid) || u->strangers == RECORD_UNWIND_STRANGERS_MAX ||
	    hashmap_get(&u->met, (uint32_t)record->pid))
		return 0;
	int r = hashmap_put(&u->met, (uint32_t)record->pid, 1);

	u->strangers++;
	return r ? r : u->meet(u->meet_ctx, record->pid, take_stranger, u);
}

static size_t kernel_part(const struct perfdata_sample *sample)
{
	size_t n = 0;

	while (n < sample->ncallchain && sample->callchain[n] != PERF_CONTEXT_USER)
		n++;
	return n;
}

/* Whoever ran when an interrupt came has not woken anybody. What interrupts leave to be done is done behind one, or at the end of a system
 * call that asked for it, as sending to ourselves does: that the kernel's part tells, once it has names. */
static int take_waking(struct record_unwind *u, const struct perfdata_record *record)
{
	const struct perfdata_sample *sample = &record->sample;
	struct unwound unwound = {.grade = UNWIND_NO_STACK, .end = WALK_START, .first_spliced = UINT16_MAX, .first_guess = UINT16_MAX,
				  .callchain = sample->callchain};
	struct sched_waking waking;

	if (!sample->raw || !sample->callchain || sched_payload_waking(sample->raw, sample->raw_bytes, u->waking_pid_offset, &waking)) {
		u->stats.damaged++;
		return 0;
	}
	int32_t tid = record_offcpu_known(u->offcpu, waking.pid);
	size_t kernel = kernel_part(sample);
	bool interrupt = waking.hardirq || !waking.by || (waking.softirq && !kernel);
	uint8_t flags = interrupt ? OFFCPU_IDX_INTERRUPT : waking.softirq ? OFFCPU_IDX_SOFTIRQ : 0;
	int r = 0;

	if (!tid)
		return 0;
	unwound.ncallchain = kernel;
	if (!interrupt)
		r = meet_stranger(u, record);
	if (!r && !interrupt)
		r = unwind_now(u, record, &unwound);
	return r ? r : record_offcpu_waking(u->offcpu, tid, record, flags, &unwound);
}

/* What of a record is for the waits. 1: all, it is not written; 0: it is a record as others; -errno. */
static int take_switches(struct record_unwind *u, const struct perf_event_header *header)
{
	struct perfdata_record record;
	int r = 0;

	if (perfdata_records_take(u->records, header, &record))
		return 0; /* is dealt with as damaged */
	bool is_ours = record.event == u->switches || record.event == u->wakings;

	if (header->type == PERF_RECORD_SAMPLE)
		r = record.event == u->wakings ? take_waking(u, &record) : is_ours ? take_stack(u, &record) : 0;
	else if (header->type == PERF_RECORD_LOST)
		r = is_ours ? record_offcpu_lost(u->offcpu, record.cpu, record.time_ns) : 0;
	else
		r = record_offcpu_apply(u->offcpu, &record);
	if (header->type == PERF_RECORD_EXIT || (header->type == PERF_RECORD_COMM && record.comm.exec))
		record_waiting_forget(u->threads_waiting, record.tid);
	is_ours |= header->type == PERF_RECORD_SWITCH_CPU_WIDE;
	if (!r && is_ours)
		r = record_offcpu_met(u->offcpu, &record);
	return r ? r : is_ours && header->type != PERF_RECORD_LOST;
}

static struct unwind_waiting *waiting_at(const struct record_unwind *u, size_t at)
{
	return (struct unwind_waiting *)(void *)(u->waiting + at);
}

static size_t waiting_bytes(const struct unwind_waiting *waiting)
{
	return sizeof(*waiting) + waiting->bytes;
}

/* Tries those that wait again; last: none waits any longer, as none does that has waited for long. */
static int retry(struct record_unwind *u, struct perfdata_writer *w, bool last)
{
	uint64_t now_ns = clock_monotonic_ns();
	int r = 0;

	for (size_t at = u->first; at < u->end && !r; at += waiting_bytes(waiting_at(u, at))) {
		struct unwind_waiting *waiting = waiting_at(u, at);
		bool hurry = last || now_ns - waiting->since_ns > RECORD_UNWIND_WAITING_NS;

		if (waiting->done)
			continue;
		r = take_sample(u, w, (const void *)(waiting + 1), hurry);
		if (r == -EAGAIN) {
			r = 0;
			continue;
		}
		u->stats.hurried += hurry;
		waiting->done = true;
		u->nwaiting--;
	}
	while (u->first < u->end && waiting_at(u, u->first)->done)
		u->first += waiting_bytes(waiting_at(u, u->first));
	if (u->first == u->end)
		u->first = u->end = 0;
	return r;
}

/* Keeps a sample until later. Where there is no room for it, none waits any longer. */
static int wait_for_code(struct record_unwind *u, struct perfdata_writer *w, const struct perf_event_header *header)
{
	struct unwind_waiting waiting = {.since_ns = clock_monotonic_ns(), .bytes = header->size};
	int r = 0;

	if (!u->waiting && !(u->waiting = malloc(RECORD_UNWIND_WAITING_BYTES)))
		return take_sample(u, w, header, true);
	if (u->end + waiting_bytes(&waiting) > RECORD_UNWIND_WAITING_BYTES)
		r = retry(u, w, true);
	if (r)
		return r;
	memcpy(u->waiting + u->end, &waiting, sizeof(waiting));
	memcpy(u->waiting + u->end + sizeof(waiting), header, header->size);
	u->end += waiting_bytes(&waiting);
	u->nwaiting++;
	u->stats.waited++;
	return 0;
}

static int take_other(struct record_unwind *u, struct perfdata_writer *w, const struct perf_event_header *header)
{
	struct perfdata_record record;
	bool other_program = header->type == PERF_RECORD_COMM && header->misc & PERF_RECORD_MISC_COMM_EXEC;
	int r = 0;

	/* Those that wait are of the program that was. */
	if (other_program && u->nwaiting)
		r = retry(u, w, true);
	if (!r && !perfdata_records_take(u->records, header, &record)) {
		r = unwinder_apply(u->unwinder, &record);
		if (!r && u->meet && (header->type == PERF_RECORD_FORK || header->type == PERF_RECORD_COMM) &&
		    !hashmap_get(&u->met, (uint32_t)record.pid))
			r = hashmap_put(&u->met, (uint32_t)record.pid, 1);
		if (u->reader && (other_program || (header->type == PERF_RECORD_EXIT && record.pid == record.tid)))
			code_reader_forget(u->reader, record.pid);
	}
	if (!r)
		put_record(u, w, header, header->size);
	return r;
}

static int take_items(struct record_unwind *u, struct perfdata_writer *w)
{
	uint64_t begin_ns = u->offcpu ? clock_thread_ns() : 0, parts = 0, of_switches = 0;
	int r = 0;

	if (!u->ordered)
		qsort(u->items.v, u->items.len, sizeof(*u->items.v), by_time);
	for (size_t i = 0; i < u->items.len && !r; i++) {
		const struct perf_event_header *header = u->items.v[i].header;
		int taken = u->offcpu ? take_switches(u, header) : 0, part = header->type == PERF_RECORD_SAMPLE ? SAMPLE_PARTS : 1;

		parts += (uint64_t)part;
		of_switches += taken ? (uint64_t)part : 0;
		if (taken) {
			r = taken < 0 ? taken : 0;
			continue;
		}
		if (header->type != PERF_RECORD_SAMPLE) {
			r = take_other(u, w, header);
			continue;
		}
		r = take_sample(u, w, header, false);
		if (r == -EAGAIN)
			r = wait_for_code(u, w, header);
	}
	u->items.len = 0;
	u->ordered = true;
	if (of_switches)
		u->switches_ns += (uint64_t)((double)(clock_thread_ns() - begin_ns) * (double)of_switches / (double)parts);
	return r;
}

/* Hands over waits. */
static int take_offcpu_round(struct record_unwind *u, uint64_t end_ns)
{
	uint64_t begin_ns = clock_thread_ns();
	int r = end_ns ? record_offcpu_finish(u->offcpu, end_ns) : record_offcpu_round(u->offcpu);

	u->switches_ns += clock_thread_ns() - begin_ns;
	return r;
}

uint64_t record_unwind_switches_ns(const struct record_unwind *u)
{
	return u->switches_ns;
}

/* Answers to what was asked in earlier rounds, and those that waited for them, or for too long. */
static int take_answers(struct record_unwind *u, struct perfdata_writer *w)
{
	uint64_t now_ns = clock_monotonic_ns();
	int n = u->reader ? code_reader_answer(u->reader, u->unwinder) : 0;

	if (n < 0 || !u->nwaiting)
		return n < 0 ? n : 0;
	return n || now_ns - waiting_at(u, u->first)->since_ns > RECORD_UNWIND_WAITING_NS ? retry(u, w, false) : 0;
}

/* What was asked for is worth a moment, as it is not known afterwards. */
static int take_last(struct record_unwind *u, struct perfdata_writer *w)
{
	uint64_t until_ns = clock_monotonic_ns() + LAST_NS;
	int r = 0, n = 1;

	while (u->reader && u->nwaiting && !r && n > 0 && clock_monotonic_ns() < until_ns) {
		code_reader_wait(u->reader, until_ns);
		n = code_reader_answer(u->reader, u->unwinder);
		if (n > 0)
			r = retry(u, w, false);
	}
	if (!r && n < 0)
		r = n;
	return r ? r : retry(u, w, true);
}

/* At the end what is not read yet, and the code that read stacks miss, is worth a moment. */
static int take_last_waiting(struct record_unwind *u)
{
	uint64_t begin_ns = clock_monotonic_ns(), until_ns = begin_ns + LAST_READ_NS, stalled_ns;
	bool came, last = false;
	int r = 0, n = 0;

	while (!r && record_waiting_hopes(u->threads_waiting) && clock_monotonic_ns() < until_ns) {
		r = record_waiting_take(u->threads_waiting, u->unwinder, u->offcpu, last);
		/* Who does not answer for so long may never do, and the recording has no end meanwhile. */
		stalled_ns = clock_monotonic_ns() + LAST_STALL_NS;
		came = record_waiting_hurry(u->threads_waiting, stalled_ns < until_ns ? stalled_ns : until_ns);
		if (!came && clock_monotonic_ns() >= stalled_ns)
			break;
		if (u->reader && !came)
			code_reader_wait(u->reader, begin_ns + LAST_NS);
		n = u->reader && !r ? code_reader_answer(u->reader, u->unwinder) : 0;
		r = !r && n < 0 ? n : r;
		/* Those that wait for code in vain take the room of others. */
		last = last || (!came && !n) || clock_monotonic_ns() > begin_ns + LAST_NS;
	}
	return r ? r : record_waiting_take(u->threads_waiting, u->unwinder, u->offcpu, true);
}

/* Stacks of threads that wait, read and unwound. */
static int take_waiting(struct record_unwind *u, bool end)
{
	if (!u->threads_waiting)
		return 0;
	return end ? take_last_waiting(u) : record_waiting_take(u->threads_waiting, u->unwinder, u->offcpu, false);
}

/* Waits become known up to a round late, so that they are older than what was written a round ago: every other round is not told to
 * readers as one. */
static bool is_round(struct record_unwind *u, uint64_t end_ns)
{
	return end_ns || (!u->nwaiting && (!u->offcpu || u->offcpu_rounds++ & 1));
}

/* All that came, also where it cannot be written any more. */
static int take_round(struct record_unwind *u, struct perfdata_writer *w, uint64_t end_ns)
{
	int r = take_answers(u, w);

	if (!r)
		r = take_items(u, w);
	if (!r && end_ns)
		r = take_waiting(u, true);
	if (!r && u->offcpu)
		r = take_offcpu_round(u, end_ns);
	if (!r && !end_ns)
		r = take_waiting(u, false);
	return r || !end_ns ? r : take_last(u, w);
}

int record_unwind_round(struct record_unwind *u, struct perfdata_writer *w, uint64_t end_ns)
{
	u->writer = w;
	int r = take_round(u, w, end_ns);
	/* What is said of samples goes to the disk before they do. */
	int rows = u->error ? 0 : record_rows_round(u->rows, u->offcpu ? record_offcpu_threads(u->offcpu) : 0);

	/* A round is over when no record older than it is to come. What is queued must go now in any case: it is in blocks that are used
	 * again, and in rings. */
	int written = !r && !rows && is_round(u, end_ns) ? perfdata_writer_round(w) : perfdata_writer_flush(w);

	if (!u->error)
		u->error = rows ? rows : written;
	if (end_ns && (rows = record_rows_end(u->rows)) && !u->error)
		u->error = rows;
	u->block = u->used = 0;
	/* A record that was begun and whose rest did not come, as its ring is damaged. */
	u->stats.damaged += u->part != NULL;
	u->part = NULL;
	return r ? r : u->error;
}
