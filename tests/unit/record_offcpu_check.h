/* Shared by tests of profcpu/record/offcpu_records: records that the tests make, and the resulting
 * waits.
 */
#ifndef RECORD_OFFCPU_CHECK_H
#define RECORD_OFFCPU_CHECK_H

#include "base/clock.h"
#include "profcpu/record/offcpu_records.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define GOT_MAX 16
#define BEGIN_NS 1000
#define PID 70

struct got {
	struct perfdata_offcpu sample;
	struct unwound unwound;
	struct offcpu_idx_wait row;
	uint64_t words[4];
};

struct fixture {
	struct record_offcpu *o;
	struct got got[GOT_MAX];
	size_t n;
	struct offcpu_idx_thread threads[GOT_MAX];
	size_t nthreads;
	struct perfdata_offcpu wakers[GOT_MAX];
	size_t nwakers;
	int fail_with;
	int32_t requested;
	size_t nrequested;
};

static inline int take_wait(void *ctx, const struct perfdata_offcpu *sample,
			    const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	struct fixture *f = ctx;

	assert_true(f->n < GOT_MAX && sample->ncallchain <= 4);
	f->got[f->n] = (struct got){*sample, *unwound, *row, {0}};
	if (sample->ncallchain)
		memcpy(f->got[f->n].words, sample->callchain, sample->ncallchain * 8);
	f->n++;
	return f->fail_with;
}

static inline int take_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	struct fixture *f = ctx;

	assert_true(f->nthreads < GOT_MAX);
	f->threads[f->nthreads++] = *thread;
	return 0;
}

#define WAKER_OFF 500 /* of the first record; each following record is one further */

static inline int take_waker(void *ctx, const struct perfdata_offcpu *sample,
			     const struct unwound *unwound, uint64_t *ret_off)
{
	struct fixture *f = ctx;

	(void)unwound;
	assert_true(f->nwakers < GOT_MAX);
	*ret_off = WAKER_OFF + f->nwakers;
	f->wakers[f->nwakers++] = *sample;
	return 0;
}

static inline int take_request(void *ctx, int32_t pid, int32_t tid)
{
	struct fixture *f = ctx;

	assert_int_equal(pid, PID);
	f->requested = tid;
	f->nrequested++;
	return 0;
}

static inline void begin_with(struct fixture *f, const struct record_offcpu_options *options)
{
	*f = (struct fixture){0};
	assert_int_equal(record_offcpu_new(options, &f->o), 0);
	record_offcpu_to(f->o, &(struct record_offcpu_writer){.ctx = f,
							      .wait = take_wait,
							      .thread = take_thread,
							      .waker = take_waker,
							      .request = take_request});
}

static inline void begin(struct fixture *f, uint64_t min_ns)
{
	begin_with(f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS,
						      .min_ns = min_ns,
						      .first_pids = true,
						      .kthreadd = 2,
						      .proc = "/nowhere"});
}

static inline void end(struct fixture *f, uint64_t end_ns)
{
	assert_int_equal(record_offcpu_finish(f->o, end_ns), 0);
}

static inline void task(struct fixture *f, uint32_t type, uint64_t time_ns, int32_t pid,
			int32_t tid, int32_t ppid)
{
	const struct perfdata_record record = {.type = type,
					       .time_ns = time_ns,
					       .pid = pid,
					       .tid = tid,
					       .cpu = -1,
					       .task = {ppid, ppid}};

	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

static inline void exec(struct fixture *f, uint64_t time_ns, int32_t pid)
{
	const struct perfdata_record record = {.type = PERF_RECORD_COMM,
					       .time_ns = time_ns,
					       .pid = pid,
					       .tid = pid,
					       .cpu = 1,
					       .comm = {"program", true}};

	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

static inline void in(struct fixture *f, uint64_t time_ns, int32_t tid)
{
	const struct perfdata_record record = {.type = PERF_RECORD_SWITCH_CPU_WIDE,
					       .time_ns = time_ns,
					       .pid = PID,
					       .tid = tid,
					       .cpu = 3};

	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

/* With the stack that `ip` stands for, shortly before; 0: without a stack. */
static inline void out(struct fixture *f, uint64_t time_ns, int32_t tid, uint64_t ip)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, ip, 0xAA};
	const struct unwound unwound = {.callchain = words,
					.ncallchain = 3,
					.grade = UNWIND_SPLICED,
					.end = 2,
					.first_spliced = 1,
					.first_guess = UINT16_MAX};
	struct perfdata_record record = {.type = PERF_RECORD_SAMPLE,
					 .time_ns = time_ns - 1,
					 .pid = PID,
					 .tid = tid,
					 .cpu = 3};

	if (ip)
		assert_int_equal(record_offcpu_stack(f->o, &record, &unwound), 0);
	record.type = PERF_RECORD_SWITCH_CPU_WIDE;
	record.misc = PERF_RECORD_MISC_SWITCH_OUT;
	record.time_ns = time_ns;
	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

static inline void assert_wait(const struct got *g, int32_t tid, uint64_t time_ns, uint64_t off_ns,
			       uint64_t ip)
{
	assert_int_equal(g->sample.tid, tid);
	assert_int_equal(g->sample.time_ns, time_ns);
	assert_int_equal(g->sample.off_ns, off_ns);
	assert_int_equal(g->sample.ncallchain, ip ? 3 : 0);
	assert_int_equal(g->words[1], ip);
	assert_int_equal(g->unwound.grade, ip ? UNWIND_SPLICED : UNWIND_NO_STACK);
}

static inline void record_seen(struct fixture *f, int32_t cpu, uint64_t time_ns)
{
	assert_int_equal(record_offcpu_note_record(
				 f->o, &(struct perfdata_record){.cpu = cpu, .time_ns = time_ns}),
			 0);
}

#endif
