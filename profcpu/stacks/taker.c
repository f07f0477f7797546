#include "profcpu/stacks/taker.h"

#include "base/arch.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "container/ask.h"
#include "container/memory.h"
#include "profcpu/record/blocked_reader.h"
#include "profcpu/record/code_reader.h"
#include "profcpu/record/unwind.h"
#include "profcpu/stacks/running.h"
#include "recording/perfdata_records.h"
#include "sampler/offcpu/blocked.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define TAKER_FRAMES_MAX 8000 /* frames that fit into a record */
#define TAKER_ROUND_NS (4 * NS_PER_MS)
/* Rounds before threads that seem to run are sampled: most of them wait soon. */
#define TAKER_ROUNDS_BEFORE 2
/* Threads that cannot be sampled may still wait. It ends when none did for this time. */
#define TAKER_NO_SAMPLES_NS (100 * NS_PER_MS)

struct taker {
	const struct taker_options *options;
	struct stacks_threads *threads;
	struct unwinder *unwinder;
	struct code_reader *code;
	struct record_blocked *blocked;
	struct perfdata *maps;   /* decoder of the records from /proc */
	struct running *running; /* NULL: not needed yet, or not possible */
	bool tried_running;
	struct sampler_problem problem; /* why not */
	bool last;                      /* nothing waits for code */
};

static int taker_apply(struct taker *t, const struct perfdata_record *record)
{
	int r = unwinder_apply(t->unwinder, record);

	return r ? r
		 : stacks_files_records(t->options->files, record->header, record->header->size);
}

/* Takes the records of the process from /proc. */
static int taker_synthesized(void *ctx, const void *data, size_t len)
{
	const unsigned char *at = data, *end = at + len;
	struct taker *t = ctx;
	int r = 0;

	while (!r && at < end) {
		const struct perf_event_header *header = (const void *)at;
		struct perfdata_record record;

		if (!perfdata_records_parse(t->maps, header, &record))
			r = taker_apply(t, &record);
		at += header->size;
	}
	return r;
}

/* The state and the kernel's part are of the same wait if its count is still the same. */
static int taker_settle(struct taker *t, struct stacks_thread *thread, uint64_t count)
{
	uint64_t now;
	int r = stacks_threads_read_state(t->threads, thread);

	if (!r)
		r = stacks_threads_read_kernel(t->threads, thread);
	if (r)
		return r == -ENOMEM ? r : 0;
	thread->settled = !blocked_count(NULL, thread->tid, &now) && now == count;
	return 0;
}

/* A later stack replaces an earlier one, unless the earlier one is of a settled moment. */
static int taker_blocked(void *ctx, int32_t tid, uint64_t count, const struct blocked_stack *found,
			 const struct unwound *unwound)
{
	struct taker *t = ctx;
	struct stacks_thread *thread = stacks_threads_find(t->threads, tid);
	int r = 0;

	if (!thread || (thread->settled && thread->count != count))
		return 0;
	if (unwound->grade == UNWIND_NO_STACK)
		thread->is_32 = true;
	else
		r = stacks_files_sample(t->options->files, t->threads->pid, tid, unwound,
					&thread->sample);
	thread->how = thread->is_32 ? STACKS_NO_STACK : STACKS_WAITING;
	thread->number = found->syscall;
	thread->count = count;
	return r || thread->settled ? r : taker_settle(t, thread, count);
}

/* Unwinds the sample of a thread that runs. A later one replaces it if code was unknown. */
static int taker_sample(struct taker *t, const struct perfdata_record *record)
{
	struct stacks_thread *thread = record->pid == t->threads->pid
					       ? stacks_threads_find(t->threads, record->tid)
					       : NULL;
	struct unwound unwound;

	if (!thread || thread->settled || !record->sample.callchain)
		return 0;
	struct unwinder_sample sample = record_unwind_sample(record, t->last);
	int r = unwinder_sample(t->unwinder, &sample, &unwound);
	bool whole = !r;

	if (r == -EAGAIN) {
		sample.last = true;
		r = unwinder_sample(t->unwinder, &sample, &unwound);
	}
	thread->is_32 = !r && record->sample.user_abi == PERF_SAMPLE_REGS_ABI_32;
	if (!r && !thread->is_32)
		r = stacks_files_sample(t->options->files, record->pid, record->tid, &unwound,
					&thread->sample);
	if (r)
		return r;
	thread->how = thread->is_32 ? STACKS_NO_STACK : STACKS_RUNNING;
	thread->state = 'R';
	thread->settled = whole;
	free(TAKE_PTR(thread->kernel));
	return 0;
}

static int taker_record(void *ctx, const struct perfdata_record *record)
{
	struct taker *t = ctx;

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		return taker_sample(t, record);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_KSYMBOL:
		return taker_apply(t, record);
	default:
		return 0;
	}
}

static int taker_begin(struct taker *t)
{
	const struct perf_event_attr attr = stacks_files_attr();
	const struct sampler_synthesis from = {.proc = "/proc", .identified = true};
	int r = perfdata_records_new(&attr, 1, &t->maps);

	if (!r)
		r = code_reader_new(0, &t->code);
	const struct unwinder_options unwinder = {.opener = t->options->opener,
						  .frames_max = TAKER_FRAMES_MAX,
						  .request_code = code_reader_request,
						  .ctx = t->code};

	if (!r)
		r = unwinder_new(&unwinder, &t->unwinder);
	if (!r)
		r = record_blocked_new(NULL, &t->blocked);
	return r ? r : sampler_synthesize_process(&from, t->threads->pid, taker_synthesized, t);
}

static void taker_end(struct taker *t)
{
	running_free(t->running);
	record_blocked_free(t->blocked);
	unwinder_free(t->unwinder);
	code_reader_free(t->code);
	perfdata_close(t->maps);
}

static bool taker_wants(const struct stacks_thread *thread)
{
	return !thread->settled && !thread->ended && thread->state != 'Z' && thread->state != 'X';
}

/* Takes what the readers of memory have, until until_ns. 0 or -errno. */
static int taker_take(struct taker *t, uint64_t until_ns)
{
	const struct record_blocked_sink sink = {t, taker_blocked};
	int r = 0, n = 0;

	do {
		bool came = record_blocked_wait(t->blocked, until_ns);

		r = record_blocked_take(t->blocked, t->unwinder, &sink, false);
		if (!r && !came)
			code_reader_wait(t->code, until_ns);
		n = r ? 0 : code_reader_take(t->code, t->unwinder);
		r = !r && n < 0 ? n : r;
	} while (!r && record_blocked_has_work(t->blocked) && clock_monotonic_ns() < until_ns);
	return r;
}

/* Requests stacks of all threads without one. *ret_wanted: their number. 0 or -ENOMEM. */
static int taker_request(struct taker *t, size_t *ret_wanted)
{
	int r = 0;

	*ret_wanted = 0;
	for (size_t i = 0; i < t->threads->list.len && !r; i++) {
		struct stacks_thread *thread = &t->threads->list.v[i];
		uint64_t count;

		if (!taker_wants(thread))
			continue;
		r = blocked_count(NULL, thread->tid, &count);
		thread->ended = r == -ENOENT || r == -ESRCH;
		*ret_wanted += !thread->ended;
		r = thread->ended
			    ? 0
			    : record_blocked_request(t->blocked, t->threads->pid, thread->tid);
	}
	if (!r)
		record_blocked_read_now(t->blocked);
	return r;
}

static int taker_rounds(struct taker *t)
{
	uint64_t now_ns = clock_monotonic_ns(), last_ns = now_ns + t->options->limit_ns;
	uint64_t until_ns = last_ns;
	size_t fewest = SIZE_MAX;
	int r = 0;

	for (int round = 0; now_ns < until_ns && !r; round++) {
		size_t wanted;

		r = taker_request(t, &wanted);
		if (!r)
			r = taker_take(t, MIN(now_ns + TAKER_ROUND_NS, until_ns));
		if (r || !wanted || record_blocked_stats(t->blocked).refused)
			break;
		if (!t->tried_running && round >= TAKER_ROUNDS_BEFORE) {
			t->tried_running = true;
			r = running_new(t->threads->pid, taker_record, t, &t->running, &t->problem);
			r = r == -ENOMEM ? r : 0;
		}
		now_ns = clock_monotonic_ns();
		if (t->running)
			r = running_drain(t->running, now_ns + TAKER_ROUND_NS);
		else if (t->tried_running && wanted < fewest)
			until_ns = MIN(last_ns, now_ns + TAKER_NO_SAMPLES_NS);
		fewest = MIN(wanted, fewest);
	}
	return r;
}

/* Why a thread that does not answer, or may not be read, has no stack. 0 or -ENOMEM. */
static int taker_why_unread(struct stacks_thread *thread, int error)
{
	if (error == -ESRCH || error == -ENOENT)
		thread->ended = true;
	if (error == -ETIME)
		return stacks_thread_why(thread, "its process " ASK_SILENT_WHY);
	return thread->ended ? 0 : stacks_thread_why(thread, "%s", strerror(-error));
}

/* Why a thread has no stack, by what the kernel says of it now. 0 or -ENOMEM. */
static int taker_why(struct taker *t, struct stacks_thread *thread)
{
	struct blocked_stack found;
	AUTO_FREE char *text = NULL;
	size_t len;

	if (thread->is_32)
		return stacks_thread_why(thread, "stacks of 32-bit programs are not unwound");
	int r = stacks_threads_read_state(t->threads, thread);

	if (!r && (thread->state == 'Z' || thread->state == 'X'))
		return stacks_thread_why(thread, "it has ended, but other threads go on");
	if (!r)
		r = proc_read(t->threads->pid, thread->tid, "syscall", PROC_FILE_MAX, &text, &len);
	if (r)
		return r == -ENOMEM ? r : taker_why_unread(thread, r);
	r = blocked_parse(text, &found);
	if (!r)
		return stacks_thread_why(thread, "its stack cannot be read");
	if (strncmp(text, "running", 7) != 0)
		return stacks_thread_why(thread, "it has only kernel code");
	if (t->problem.code)
		return stacks_thread_why(thread, "it runs, and profcpu cannot %s %s",
					 t->problem.what, t->problem.detail);
	return stacks_thread_why(thread, "it was ready to run, but got no CPU for %.1f s",
				 (double)t->options->limit_ns / (double)NS_PER_S);
}

/* Takes the last stacks with the code that is known, and finds why others are missing. */
static int taker_finish(struct taker *t)
{
	const struct record_blocked_sink sink = {t, taker_blocked};
	int r = record_blocked_take(t->blocked, t->unwinder, &sink, true);

	t->last = true;
	if (!r && t->running)
		r = running_drain(t->running, 0);
	for (size_t i = 0; i < t->threads->list.len && !r; i++) {
		struct stacks_thread *thread = &t->threads->list.v[i];

		if (thread->how == STACKS_NO_STACK && !thread->ended)
			r = taker_why(t, thread);
	}
	return r;
}

/* Whether memory and system calls of the process may be read. Errors of taker_run. */
static int taker_may_read(const struct stacks_threads *threads)
{
	AUTO_FREE char *syscall = NULL, *stat = NULL;
	uint64_t word, stack = 0;
	size_t len;
	int r = proc_read(threads->pid, 0, "syscall", PROC_FILE_MAX, &syscall, &len);

	if (r == -ETIME)
		return r;
	if (!r)
		r = proc_read(threads->pid, 0, "stat", PROC_FILE_MAX, &stat, &len);
	if (!r && !proc_stat_field(stat, PROC_STAT_START_STACK, &stack) && stack)
		r = memory_read(threads->pid, stack, &word, sizeof(word));
	/* Other errors are found for each thread. */
	return r == -EPERM || r == -EACCES || r == -ENOSYS || r == -ENOENT || r == -ENOMEM ? r : 0;
}

int taker_run(const struct taker_options *options)
{
	struct taker *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->options = options;
	t->threads = options->threads;
	int r = ARCH_CAN_RECORD ? taker_may_read(t->threads) : -ENOTSUP;

	if (!r)
		r = taker_begin(t);
	if (!r)
		r = taker_rounds(t);
	if (!r && record_blocked_stats(t->blocked).refused)
		r = -EPERM;
	if (!r)
		r = taker_finish(t);
	taker_end(t);
	free(t);
	return r;
}
