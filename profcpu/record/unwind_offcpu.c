/* Records of switches and wakings, and stacks of blocked threads. */
#include "profcpu/record/unwind_impl.h"

#include "base/clock.h"
#include "recording/perfdata_records.h"
#include "sampler/offcpu/sched_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAST_READ_NS (2 * NS_PER_S)  /* longest time for reading stacks at the end */
#define LAST_STALL_NS (NS_PER_S / 4) /* give up if no stack comes in this time */

static int write_offcpu(struct record_unwind *u, const struct perfdata_offcpu *sample,
			const struct unwound *unwound)
{
	unsigned char *out = record_unwind_room(u, PERFDATA_RECORD_BYTES_MAX_OUT);
	size_t bytes;

	if (!out || record_rows_sample(u->rows, perfdata_writer_next(u->writer), unwound))
		return -ENOMEM;
	bytes = perfdata_offcpu_write(sample, out);
	record_unwind_use_room(u, bytes);
	if (bytes)
		record_unwind_put(u, u->writer, out, bytes);
	return 0;
}

static int write_wait(void *ctx, const struct perfdata_offcpu *wait, const struct unwound *unwound,
		      const struct offcpu_idx_wait *row)
{
	struct record_unwind *u = ctx;
	struct perfdata_offcpu sample = *wait;
	struct offcpu_idx_wait placed = *row;

	placed.file_off = perfdata_writer_next(u->writer);
	sample.id = u->switches_id;
	return record_rows_wait(u->rows, &placed) ? -ENOMEM : write_offcpu(u, &sample, unwound);
}

static int write_waker(void *ctx, const struct perfdata_offcpu *waker,
		       const struct unwound *unwound, uint64_t *ret_off)
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

static int write_unknown(void *ctx, const struct offcpu_idx_unknown *unknown)
{
	struct record_unwind *u = ctx;

	return record_rows_unknown(u->rows, unknown);
}

static int request_blocked(void *ctx, int32_t pid, int32_t tid)
{
	struct record_unwind *u = ctx;

	return record_blocked_request(u->blocked, pid, tid);
}

static int take_blocked_stack(void *ctx, int32_t tid, uint64_t count,
			      const struct blocked_stack *found, const struct unwound *unwound)
{
	(void)found;
	return record_offcpu_add_stack(ctx, tid, count, unwound);
}

/* Takes the stacks that the reader has. 0 or -ENOMEM. */
static int take_blocked(struct record_unwind *u, bool last)
{
	const struct record_blocked_sink sink = {u->offcpu, take_blocked_stack};

	return record_blocked_take(u->blocked, u->unwinder, &sink, last);
}

static void read_blocked_now(void *ctx)
{
	struct record_unwind *u = ctx;

	record_blocked_read_now(u->blocked);
}

int record_unwind_begin_offcpu(struct record_unwind *u, const struct record_unwind_options *o)
{
	u->offcpu = o->offcpu;
	u->switches = (uint32_t)o->nopened - (o->wakings ? 2 : 1);
	perfdata_records_assign_unknown_ids(u->records, u->switches);
	u->switches_id = o->opened[u->switches].nids ? o->opened[u->switches].ids[0] : 0;
	u->wakings = o->wakings ? u->switches + 1 : UINT32_MAX;
	u->wakings_id = o->wakings && o->opened[u->wakings].nids ? o->opened[u->wakings].ids[0] : 0;
	u->waking_pid_offset = o->waking_pid_offset;
	u->waker_wait_ns = o->waker_wait_ns;
	record_offcpu_to(u->offcpu, &(struct record_offcpu_writer){.ctx = u,
								   .wait = write_wait,
								   .unknown = write_unknown,
								   .thread = write_thread,
								   .waker = write_waker,
								   .request = request_blocked,
								   .read_now = read_blocked_now});
	int r = record_blocked_new(o->proc, &u->blocked);

	return r || !o->read_waker ? r
				   : waker_processes_new(&o->synthesis, o->read_waker, &u->wakers);
}

/* Unwinds now with the known code, and requests unknown code for the next time. */
static int unwind_now(struct record_unwind *u, const struct perfdata_record *record,
		      struct unwound *ret_unwound)
{
	struct unwinder_sample sample = record_unwind_sample(record, false);
	int r = unwinder_sample(u->unwinder, &sample, ret_unwound);

	if (r != -EAGAIN)
		return r;
	sample.last = true;
	return unwinder_sample(u->unwinder, &sample, ret_unwound);
}

/* Keeps the stack of a thread that is about to leave its CPU. */
static int take_stack(struct record_unwind *u, const struct perfdata_record *record)
{
	struct unwound unwound;
	int32_t first_pid;
	int r = 0;

	if (!record->sample.callchain || !record_offcpu_wants(u->offcpu, record->tid))
		return 0;
	if (record->sample.raw &&
	    !sched_payload_current(record->sample.raw, record->sample.raw_bytes, &first_pid))
		r = record_offcpu_learn(u->offcpu, first_pid, record->tid);
	if (!r)
		r = unwind_now(u, record, &unwound);
	return r ? r : record_offcpu_stack(u->offcpu, record, &unwound);
}

/* Takes the state of a waker's process, as records, into the recording and the unwinder. */
static int take_waker_state(void *ctx, const void *data, size_t len)
{
	struct record_unwind *u = ctx;
	const unsigned char *at = data, *end = at + len;
	const struct perf_event_header *header;
	int r = 0;

	for (; !r && at < end; at += header->size) {
		header = (const void *)at;
		unsigned char *out = record_unwind_room(u, header->size);

		if (!out)
			return -ENOMEM;
		memcpy(out, at, header->size);
		record_unwind_use_room(u, header->size);
		struct perfdata_record record;
		bool damaged = perfdata_records_parse(u->records, (const void *)out, &record);

		r = record_unwind_take_other(u, u->writer, (const void *)out,
					     damaged ? NULL : &record);
	}
	return r;
}

/* Takes the state of wakers' processes that was read. now: waits for the rest, within the limit. */
int record_unwind_take_wakers(struct record_unwind *u, bool now)
{
	uint64_t begin_ns = clock_monotonic_ns();

	if (!u->wakers)
		return 0;
	if (!now)
		u->waker_waited_ns = 0; /* a new round */
	bool may_wait = now && u->waker_waited_ns < u->waker_wait_ns;
	int r = waker_processes_take(u->wakers,
				     may_wait ? u->waker_wait_ns - u->waker_waited_ns : 0,
				     take_waker_state, u);

	if (now)
		u->waker_waited_ns += clock_monotonic_ns() - begin_ns;
	return r;
}

/* Adds the state of a waker's process that is not a target, once. */
static int add_waker_process(struct record_unwind *u, const struct perfdata_record *record)
{
	if (!u->wakers || record_offcpu_wants(u->offcpu, record->tid))
		return 0;
	int r = waker_processes_request(u->wakers, record->pid);

	return r > 0 ? record_unwind_take_wakers(u, true) : r;
}

/* Handles a waking. An interrupt is its own waker, not the interrupted thread. A softirq runs after
 * an interrupt or at the end of a system call. The kernel frames show which, once they have names.
 */
static int take_waking(struct record_unwind *u, const struct perfdata_record *record)
{
	const struct perfdata_sample *sample = &record->sample;
	struct unwound unwound = {.grade = UNWIND_NO_STACK,
				  .end = WALK_START,
				  .first_spliced = UINT16_MAX,
				  .first_guess = UINT16_MAX,
				  .callchain = sample->callchain};
	struct sched_waking waking;

	if (!sample->raw || !sample->callchain ||
	    sched_payload_waking(sample->raw, sample->raw_bytes, u->waking_pid_offset, &waking)) {
		u->stats.damaged++;
		return 0;
	}
	int32_t tid = record_offcpu_known(u->offcpu, waking.pid);
	size_t kernel = unwinder_kernel_words(sample->callchain, sample->ncallchain);
	bool interrupt = waking.hardirq || !waking.by || (waking.softirq && !kernel);
	uint8_t flags = interrupt ? OFFCPU_IDX_INTERRUPT : waking.softirq ? OFFCPU_IDX_SOFTIRQ : 0;
	int r = 0;

	if (!tid)
		return 0;
	unwound.ncallchain = kernel;
	if (!interrupt)
		r = add_waker_process(u, record);
	if (!r && !interrupt)
		r = unwind_now(u, record, &unwound);
	return r ? r : record_offcpu_waking(u->offcpu, tid, record, flags, &unwound);
}

/* Uses a record for waits. 1: done, it is not written; 0: it is written like others; -errno. */
int record_unwind_take_offcpu(struct record_unwind *u, const struct perfdata_record *record)
{
	bool is_ours = record->event == u->switches || record->event == u->wakings;
	int r;

	if (record->type == PERF_RECORD_SAMPLE)
		r = record->event == u->wakings ? take_waking(u, record)
		    : is_ours                   ? take_stack(u, record)
						: 0;
	else if (record->type == PERF_RECORD_LOST)
		r = is_ours ? record_offcpu_lost(u->offcpu, record->cpu, record->time_ns) : 0;
	else
		r = record_offcpu_apply(u->offcpu, record);
	if (record->type == PERF_RECORD_EXIT ||
	    (record->type == PERF_RECORD_COMM && record->comm.exec))
		record_blocked_forget(u->blocked, record->tid);
	is_ours |= record->type == PERF_RECORD_SWITCH_CPU_WIDE;
	if (!r && is_ours)
		r = record_offcpu_note_record(u->offcpu, record);
	return r ? r : is_ours && record->type != PERF_RECORD_LOST;
}

/* Writes finished waits. */
int record_unwind_hand_over_waits(struct record_unwind *u, uint64_t end_ns)
{
	uint64_t begin_ns = clock_thread_ns();
	int r = end_ns ? record_offcpu_finish(u->offcpu, end_ns) : record_offcpu_round(u->offcpu);

	u->switches_cpu_ns += clock_thread_ns() - begin_ns;
	return r;
}

/* Waits a moment for the last stacks and for the code that they need. */
static int take_last_blocked(struct record_unwind *u)
{
	uint64_t begin_ns = clock_monotonic_ns(), until_ns = begin_ns + LAST_READ_NS, stalled_ns;
	bool came, last = false;
	int r = 0, n = 0;

	while (!r && record_blocked_has_work(u->blocked) && clock_monotonic_ns() < until_ns) {
		r = take_blocked(u, last);
		/* Give up on memory that cannot be read in time: the recording must end. */
		stalled_ns = clock_monotonic_ns() + LAST_STALL_NS;
		came = record_blocked_wait(u->blocked,
					   stalled_ns < until_ns ? stalled_ns : until_ns);
		if (!came && clock_monotonic_ns() >= stalled_ns)
			break;
		if (u->reader && !came)
			code_reader_wait(u->reader, begin_ns + RECORD_UNWIND_LAST_NS);
		n = u->reader && !r ? code_reader_take(u->reader, u->unwinder) : 0;
		r = !r && n < 0 ? n : r;
		/* Stacks whose code does not come take room from others. */
		last = last || (!came && !n) ||
		       clock_monotonic_ns() > begin_ns + RECORD_UNWIND_LAST_NS;
	}
	return r ? r : take_blocked(u, true);
}

/* Takes and unwinds stacks of blocked threads. */
int record_unwind_take_blocked(struct record_unwind *u, bool end)
{
	if (!u->blocked)
		return 0;
	return end ? take_last_blocked(u) : take_blocked(u, false);
}
