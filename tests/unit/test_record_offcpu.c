/* Waits out of records, made here. */
#include "base/clock.h"
#include "profcpu/record_offcpu.h"

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
	int32_t asked;
	size_t nasked;
};

static int take_wait(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	struct fixture *f = ctx;

	assert_true(f->n < GOT_MAX && sample->ncallchain <= 4);
	f->got[f->n] = (struct got){*sample, *unwound, *row, {0}};
	if (sample->ncallchain)
		memcpy(f->got[f->n].words, sample->callchain, sample->ncallchain * 8);
	f->n++;
	return f->fail_with;
}

static int take_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	struct fixture *f = ctx;

	assert_true(f->nthreads < GOT_MAX);
	f->threads[f->nthreads++] = *thread;
	return 0;
}

#define WAKER_OFF 500 /* of the first, others are behind it by one each */

static int take_waker(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound, uint64_t *ret_off)
{
	struct fixture *f = ctx;

	(void)unwound;
	assert_true(f->nwakers < GOT_MAX);
	*ret_off = WAKER_OFF + f->nwakers;
	f->wakers[f->nwakers++] = *sample;
	return 0;
}

static int take_ask(void *ctx, int32_t pid, int32_t tid)
{
	struct fixture *f = ctx;

	assert_int_equal(pid, PID);
	f->asked = tid;
	f->nasked++;
	return 0;
}

static void begin_with(struct fixture *f, const struct record_offcpu_options *options)
{
	*f = (struct fixture){0};
	assert_int_equal(record_offcpu_new(options, &f->o), 0);
	record_offcpu_to(f->o, &(struct record_offcpu_writer){f, take_wait, take_thread, take_waker, take_ask, NULL});
}

static void begin(struct fixture *f, uint64_t min_ns)
{
	begin_with(f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .min_ns = min_ns, .first_pids = true, .kthreadd = 2,
						       .proc = "/nowhere"});
}

static void end(struct fixture *f, uint64_t end_ns)
{
	assert_int_equal(record_offcpu_finish(f->o, end_ns), 0);
}

static void task(struct fixture *f, uint32_t type, uint64_t time_ns, int32_t pid, int32_t tid, int32_t ppid)
{
	const struct perfdata_record record = {.type = type, .time_ns = time_ns, .pid = pid, .tid = tid, .cpu = -1, .task = {ppid, ppid}};

	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

static void exec(struct fixture *f, uint64_t time_ns, int32_t pid)
{
	const struct perfdata_record record = {
		.type = PERF_RECORD_COMM, .time_ns = time_ns, .pid = pid, .tid = pid, .cpu = 1, .comm = {"program", true}};

	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

static void in(struct fixture *f, uint64_t time_ns, int32_t tid)
{
	const struct perfdata_record record = {
		.type = PERF_RECORD_SWITCH_CPU_WIDE, .time_ns = time_ns, .pid = PID, .tid = tid, .cpu = 3};

	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

/* With the stack that `ip` stands for, a moment before; 0: without. */
static void out(struct fixture *f, uint64_t time_ns, int32_t tid, uint64_t ip)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, ip, 0xAA};
	const struct unwound unwound = {.callchain = words, .ncallchain = 3, .grade = UNWIND_SPLICED, .end = 2, .first_spliced = 1,
					.first_guess = UINT16_MAX};
	struct perfdata_record record = {
		.type = PERF_RECORD_SAMPLE, .time_ns = time_ns - 1, .pid = PID, .tid = tid, .cpu = 3};

	if (ip)
		assert_int_equal(record_offcpu_stack(f->o, &record, &unwound), 0);
	record.type = PERF_RECORD_SWITCH_CPU_WIDE;
	record.misc = PERF_RECORD_MISC_SWITCH_OUT;
	record.time_ns = time_ns;
	assert_int_equal(record_offcpu_apply(f->o, &record), 0);
}

static void assert_wait(const struct got *g, int32_t tid, uint64_t time_ns, uint64_t off_ns, uint64_t ip)
{
	assert_int_equal(g->sample.tid, tid);
	assert_int_equal(g->sample.time_ns, time_ns);
	assert_int_equal(g->sample.off_ns, off_ns);
	assert_int_equal(g->sample.ncallchain, ip ? 3 : 0);
	assert_int_equal(g->words[1], ip);
	assert_int_equal(g->unwound.grade, ip ? UNWIND_SPLICED : UNWIND_NO_STACK);
}

static void a_wait_has_the_stack_with_which_it_began(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	out(&f, 2000, 71, 0x10);
	in(&f, 2500, 71);
	out(&f, 2600, 71, 0); /* its sample was lost: none is better than that of another wait */
	in(&f, 2700, 71);
	out(&f, 3000, 71, 0x20);
	end(&f, 4000);
	assert_int_equal(f.n, 3);
	assert_wait(&f.got[0], 71, 2500, 500, 0x10);
	assert_int_equal(f.got[0].sample.pid, PID);
	assert_int_equal(f.got[0].sample.cpu, 3);
	assert_int_equal(f.got[0].unwound.end, 2);
	assert_int_equal(f.got[0].unwound.first_spliced, 1);
	assert_wait(&f.got[1], 71, 2700, 100, 0);
	assert_wait(&f.got[2], 71, 4000, 1000, 0x20);
	struct record_offcpu_result r = record_offcpu_result(f.o);

	assert_int_equal(r.waits, 3);
	assert_int_equal(r.off_ns, 1600);
	assert_int_equal(r.no_stack_ns, 100);
	assert_int_equal(r.life_ns, 3000);
	assert_true(f.got[0].row.flags == 0 && f.got[0].row.count == 1 && f.got[0].row.runnable_ns == 0);
	assert_true(f.got[2].row.flags == OFFCPU_IDX_CUT_END);
	assert_int_equal(f.nthreads, 1);
	assert_true(f.threads[0].tid == 71 && f.threads[0].pid == PID && f.threads[0].begin_ns == BEGIN_NS && f.threads[0].end_ns == 4000 &&
		    f.threads[0].blocked_ns == 1600 && f.threads[0].running_ns == 1400 && f.threads[0].unknown_ns == 0 &&
		    f.threads[0].no_stack_ns == 100);
	record_offcpu_free(f.o);
}

static void threads_are_those_that_were_there_or_were_created(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, 2, 2, 0); /* kthreadd and a thread of the kernel */
	task(&f, PERF_RECORD_FORK, 0, 9, 9, 2);
	task(&f, PERF_RECORD_FORK, 0, 0, 0, 0); /* of another PID namespace */
	task(&f, PERF_RECORD_FORK, 2000, PID, 72, PID);
	assert_false(record_offcpu_wants(f.o, 2));
	assert_false(record_offcpu_wants(f.o, 9));
	assert_false(record_offcpu_wants(f.o, 0));
	assert_false(record_offcpu_wants(f.o, 71));
	assert_true(record_offcpu_wants(f.o, 72));
	out(&f, 2050, 71, 0x10);
	in(&f, 2060, 71);
	in(&f, 2100, 72); /* its first time on a CPU */
	out(&f, 2200, 72, 0x10);
	in(&f, 2300, 72);
	task(&f, PERF_RECORD_EXIT, 2400, PID, 72, PID);
	assert_false(record_offcpu_wants(f.o, 72));
	out(&f, 2500, 72, 0x10); /* for good */
	end(&f, 4000);
	assert_int_equal(f.n, 2);
	assert_wait(&f.got[0], 72, 2100, 100, 0);
	assert_wait(&f.got[1], 72, 2300, 100, 0x10);
	assert_true(f.got[0].row.flags == OFFCPU_IDX_PREEMPTED && f.got[0].row.runnable_ns == 100);
	assert_int_equal(record_offcpu_result(f.o).life_ns, 400);
	assert_true(f.nthreads == 1 && f.threads[0].tid == 72 && f.threads[0].runnable_ns == 100 && f.threads[0].end_ns == 2400);
	record_offcpu_free(f.o);
}

static void who_executes_a_program_goes_on_as_its_first_thread(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 2000, PID, 75, PID);
	in(&f, 2000, 75);
	exec(&f, 3000, PID);
	assert_false(record_offcpu_wants(f.o, 75));
	assert_true(record_offcpu_wants(f.o, PID));
	out(&f, 3100, PID, 0x30);
	in(&f, 3300, PID);
	end(&f, 4000);
	assert_int_equal(f.n, 1);
	assert_wait(&f.got[0], PID, 3300, 200, 0x30);
	assert_int_equal(record_offcpu_result(f.o).life_ns, 2000);
	record_offcpu_free(f.o);
}

static void an_id_that_is_used_again_is_another_thread(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 2000, PID, 71, PID);
	in(&f, 2000, 71);
	task(&f, PERF_RECORD_EXIT, 2400, PID, 71, PID);
	task(&f, PERF_RECORD_FORK, 2500, 80, 71, 80);
	in(&f, 2500, 71);
	out(&f, 2600, 71, 0x10);
	in(&f, 2700, 71);
	end(&f, 3000);
	assert_int_equal(f.n, 1);
	assert_wait(&f.got[0], 71, 2700, 100, 0x10);
	assert_int_equal(f.got[0].sample.pid, 80);
	record_offcpu_free(f.o);
}

static void short_waits_are_counted_only(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 100);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	out(&f, 2000, 71, 0x10);
	in(&f, 2099, 71);
	out(&f, 2200, 71, 0x10);
	in(&f, 2300, 71);
	end(&f, 3000);
	assert_int_equal(f.n, 1);
	assert_wait(&f.got[0], 71, 2300, 100, 0x10);
	assert_int_equal(record_offcpu_result(f.o).short_ns, 99);
	assert_int_equal(record_offcpu_result(f.o).short_waits, 1);
	record_offcpu_free(f.o);
}

static void met(struct fixture *f, int32_t cpu, uint64_t time_ns)
{
	assert_int_equal(record_offcpu_met(f->o, &(struct perfdata_record){.cpu = cpu, .time_ns = time_ns}), 0);
}

static void what_was_lost_is_not_known(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	out(&f, 2000, 71, 0x10);
	in(&f, 2100, 71);
	/* On its CPU nothing was lost before 2200, on others nothing at all. */
	met(&f, 3, 2200);
	assert_int_equal(record_offcpu_lost(f.o, 3, 2500), 0);
	out(&f, 2600, 71, 0x10);
	in(&f, 2700, 71);
	end(&f, 3000);
	assert_int_equal(f.n, 2);
	assert_int_equal(record_offcpu_result(f.o).unknown_ns, 400);
	assert_int_equal(record_offcpu_result(f.o).unwatched_ns, 0);
	record_offcpu_free(f.o);
}

/* The last record of CPU 3 is of 2200, of CPU 4 of 2300. */
static void what_a_full_ring_may_have_lost_is_not_known(void **state)
{
	static const struct {
		uint64_t full_ns[2]; /* of CPU 3 and 4; 0: it had room */
		bool before; /* rounds follow; else it was so when all was over */
		uint64_t met_ns; /* on CPU 3, in the next round */
		uint64_t unknown_ns;
	} cases[] = {
		{{0, 0}, true, 0, 0},
		{{2500, 0}, true, 0, 800},
		{{2500, 0}, false, 0, 800},
		{{0, 2500}, false, 0, 700},
		{{2500, 2500}, false, 0, 800},
		{{3100, 3100}, false, 0, 800}, /* when rings were given back, which is after the end */
		{{2500, 0}, true, 2400, 600}, /* it came before the ring was full */
		{{2500, 0}, true, 2600, 0}, /* before this one the kernel has said what is missing */
		{{9999, 0}, true, 0, 800},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		begin(&f, 0);
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		out(&f, 2000, 71, 0x10);
		in(&f, 2100, 71);
		met(&f, 3, 2200);
		met(&f, 4, 2300);
		assert_int_equal(record_offcpu_round(f.o), 0);
		for (int32_t cpu = 0; cpu < 2; cpu++)
			if (cases[i].full_ns[cpu])
				assert_int_equal(record_offcpu_full(f.o, 3 + cpu, cases[i].full_ns[cpu]), 0);
		assert_int_equal(record_offcpu_full(f.o, -1, 2500), 0); /* there is none */
		if (cases[i].met_ns)
			met(&f, 3, cases[i].met_ns);
		for (int n = 0; cases[i].before && n < 3; n++)
			assert_int_equal(record_offcpu_round(f.o), 0);
		end(&f, 3000);
		assert_int_equal(record_offcpu_result(f.o).unknown_ns, cases[i].unknown_ns);
		record_offcpu_free(f.o);
	}
}

static void waking(struct fixture *f, uint64_t time_ns, int32_t tid, int32_t by, uint64_t ip, uint8_t flags)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, ip};
	const struct unwound unwound = {.callchain = words, .ncallchain = 2, .grade = UNWIND_COMPLETE};
	const struct perfdata_record record = {.type = PERF_RECORD_SAMPLE, .time_ns = time_ns, .pid = 90, .tid = by, .cpu = 1};

	assert_int_equal(record_offcpu_waking(f->o, tid, &record, flags, &unwound), 0);
}

/* Samples are in order all the same, by the time at which they became known. */
static void when_a_wait_ended_may_be_known_long_after(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	task(&f, PERF_RECORD_FORK, 0, PID, 72, PID);
	out(&f, 2000, 71, 0x10);
	met(&f, 3, 2200);
	assert_int_equal(record_offcpu_lost(f.o, 3, 2500), 0);
	for (uint64_t now = 3000; now < 9000; now += 1000) {
		out(&f, now, 72, 0x20);
		in(&f, now + 500, 72);
		assert_int_equal(record_offcpu_round(f.o), 0);
	}
	in(&f, 9000, 71);
	/* A switch in that is missing. */
	out(&f, 10000, 71, 0x11);
	waking(&f, 10100, 71, 90, 0xBB, 0);
	out(&f, 12000, 71, 0x12);
	in(&f, 12300, 71);
	end(&f, 13000);
	uint64_t last_ns = 0;

	for (size_t i = 0; i < f.n; i++) {
		const struct got *g = &f.got[i];

		assert_true(g->sample.time_ns >= last_ns);
		last_ns = g->sample.time_ns;
		if (g->words[1] == 0x10)
			assert_true(g->sample.time_ns == 9000 && g->sample.off_ns == 200 && g->row.end_ns == 2200);
		else if (g->words[1] == 0x11)
			assert_true(g->sample.time_ns == 12000 && g->sample.off_ns == 100 && g->row.end_ns == 10100);
		else
			assert_int_equal(g->row.end_ns, 0);
	}
	assert_int_equal(f.n, 6 + 3);
	record_offcpu_free(f.o);
}

static void waits_are_told_in_the_round_after_theirs(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	assert_int_equal(record_offcpu_round(f.o), 0);
	out(&f, 2000, 71, 0x10);
	in(&f, 2100, 71);
	assert_int_equal(record_offcpu_round(f.o), 0);
	assert_int_equal(f.n, 0);
	f.fail_with = -ENOSPC;
	assert_int_equal(record_offcpu_round(f.o), -ENOSPC);
	assert_int_equal(f.n, 1);
	record_offcpu_free(f.o);
}

static void who_woke_is_told_once_and_named_by_each_wait(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	for (uint64_t i = 0; i < 3; i++) {
		out(&f, 2000 + i * 1000, 71, 0x10);
		waking(&f, 2300 + i * 1000, 71, i < 2 ? 91 : 92, 0x20, i == 2 ? OFFCPU_IDX_SOFTIRQ : 0); /* the same twice, another with the same stack */
		in(&f, 2400 + i * 1000, 71);
	}
	out(&f, 5000, 71, 0x10);
	waking(&f, 5500, 71, 91, 0x30, OFFCPU_IDX_INTERRUPT);
	in(&f, 5600, 71);
	out(&f, 6000, 71, 0x10);
	in(&f, 6100, 71);
	end(&f, 7000);
	assert_int_equal(f.nwakers, 3);
	assert_true(f.wakers[0].tid == 91 && f.wakers[0].pid == 90 && f.wakers[0].time_ns == 2300 && f.wakers[1].tid == 92);
	assert_true(f.wakers[2].tid == 0 && f.wakers[2].pid == 0); /* not who was interrupted */
	assert_int_equal(f.n, 5);
	assert_true(f.got[0].row.waker == 91 && f.got[0].row.waker_off == WAKER_OFF && f.got[0].row.woken_ns == 2300 &&
		    f.got[0].row.runnable_ns == 100 && f.got[0].row.flags == 0);
	assert_true(f.got[1].row.waker == 91 && f.got[1].row.waker_off == WAKER_OFF);
	assert_true(f.got[2].row.waker == 92 && f.got[2].row.waker_off == WAKER_OFF + 1 && f.got[2].row.flags == OFFCPU_IDX_SOFTIRQ);
	assert_true(f.got[3].row.waker == 0 && f.got[3].row.waker_off == WAKER_OFF + 2 && f.got[3].row.flags == OFFCPU_IDX_INTERRUPT);
	assert_true(f.got[4].row.waker == 0 && f.got[4].row.waker_off == 0 && f.got[4].row.flags == 0);
	assert_int_equal(record_offcpu_result(f.o).blocked_ns, 1500);
	assert_int_equal(record_offcpu_result(f.o).woken_ns, 1400);
	record_offcpu_free(f.o);
}

static void pids_of_the_first_namespace_are_learnt(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	assert_int_equal(record_offcpu_known(f.o, 71), 71);
	assert_int_equal(record_offcpu_known(f.o, 72), 0); /* none of the threads */
	record_offcpu_free(f.o);

	begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = "/nowhere"});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	assert_int_equal(record_offcpu_known(f.o, 71), 0);
	assert_int_equal(record_offcpu_learn(f.o, 4711, 71), 0);
	assert_int_equal(record_offcpu_learn(f.o, 4712, 72), 0);
	assert_int_equal(record_offcpu_learn(f.o, 0, 71), 0);
	assert_int_equal(record_offcpu_known(f.o, 4711), 71);
	assert_int_equal(record_offcpu_known(f.o, 4712), 0);
	assert_int_equal(record_offcpu_known(f.o, 0), 0);
	task(&f, PERF_RECORD_EXIT, 2000, PID, 71, PID);
	assert_int_equal(record_offcpu_known(f.o, 4711), 0);
	record_offcpu_free(f.o);
}

static void write_stat(const char *dir, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/71/schedstat", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A /proc with one thread, 71. dir: a template of mkdtemp. */
static void make_proc(char *dir)
{
	char path[128];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/71", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_stat(dir, "500 20 7\n");
	snprintf(path, sizeof(path), "%s/thread-self", dir);
	assert_int_equal(symlink("71", path), 0);
}

static void remove_proc(const char *dir)
{
	static const char *const names[] = {"thread-self", "71/schedstat"};
	char path[128];

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/71", dir);
	rmdir(path);
	rmdir(dir);
}

static void a_wait_goes_on_whatever_was_lost(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";

	(void)state;
	make_proc(dir);
	/* Whether the scheduler says that it has come to a CPU once more than was seen. */
	for (int more = 0; more < 2; more++) {
		uint64_t now = clock_monotonic_ns();
		struct fixture f;

		begin_with(&f, &(struct record_offcpu_options){.begin_ns = now, .proc = dir});
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		in(&f, now + 1000, 71);
		out(&f, now + 2000, 71, 0x10);
		write_stat(dir, more ? "510 20 9\n" : "510 20 8\n");
		met(&f, 3, now + 3000);
		assert_int_equal(record_offcpu_lost(f.o, 3, now + 4000), 0);
		assert_int_equal(record_offcpu_round(f.o), 0);
		in(&f, clock_monotonic_ns() + 5000, 71);
		assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
		end(&f, clock_monotonic_ns() + 10000);
		assert_true(more ? record_offcpu_result(f.o).unknown_ns > 1000 : !record_offcpu_result(f.o).unknown_ns);
		assert_int_equal(f.n, more ? 3 : 2);
		assert_int_equal(f.got[1].words[1], 0x10);
		record_offcpu_free(f.o);
		write_stat(dir, "500 20 7\n");
	}
	remove_proc(dir);
}

/* OPEN and CLOSE, and what the scheduler says at its end. */
static void window(struct fixture *f, const char *dir, uint64_t open_ns, uint64_t close_ns, const char *stat)
{
	double width;

	assert_int_equal(record_offcpu_tell(f->o, OFFCPU_OPEN, open_ns), 0);
	assert_int_equal(record_offcpu_tell(f->o, OFFCPU_CLOSE, close_ns), 0);
	write_stat(dir, stat);
	assert_int_equal(record_offcpu_look(f->o, close_ns, &width), 0);
}

static void what_a_ring_lost_is_lost_in_its_window(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	double width;

	(void)state;
	make_proc(dir);
	for (int is_full = 0; is_full < 2; is_full++) {
		struct fixture f;
		uint64_t with_stack_ns = 0;

		begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		assert_int_equal(record_offcpu_tell(f.o, OFFCPU_CLOSE, 2000), 0);
		assert_int_equal(record_offcpu_look(f.o, 2000, &width), 0);
		assert_int_equal(record_offcpu_round(f.o), 0);
		/* Whether it is this wait that goes on up to the next window, nobody knows when more records may have followed. */
		window(&f, dir, 5000, 6000, "600 20 8\n");
		in(&f, 5100, 71);
		out(&f, 5200, 71, 0x10);
		met(&f, 3, 5200);
		assert_int_equal(record_offcpu_round(f.o), 0);
		if (is_full)
			assert_int_equal(record_offcpu_full(f.o, 3, 6100), 0);
		window(&f, dir, 9000, 10000, "600 20 8\n");
		assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
		end(&f, 12000);
		for (size_t i = 0; i < f.n; i++)
			with_stack_ns += f.got[i].words[1] == 0x10 ? f.got[i].sample.off_ns : 0;
		assert_true(is_full ? !with_stack_ns : with_stack_ns >= 6000);
		assert_int_equal(record_offcpu_result(f.o).unknown_ns, 0);
		record_offcpu_free(f.o);
		write_stat(dir, "500 20 7\n");
	}
	remove_proc(dir);
}

/* Nothing is seen of it but what the scheduler counts. */
static void a_thread_that_sleeps_all_the_time_waits(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct fixture f;

	(void)state;
	make_proc(dir);
	/* 0: its stack is not read; 1: it is; 2: of another wait, as it was in before. */
	for (uint64_t how = 0; how < 3; how++) {
		const uint64_t words[] = {PERF_CONTEXT_USER, 0x70, 0xAA};
		const struct unwound unwound = {.callchain = words, .ncallchain = 3, .grade = UNWIND_SPLICED};

		begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		assert_true(f.nasked == 1 && f.asked == 71);
		task(&f, PERF_RECORD_FORK, 1500, PID, 72, PID); /* of those that begin later all is seen */
		task(&f, PERF_RECORD_EXIT, 1500, PID, 72, PID);
		assert_int_equal(f.nasked, 1);
		assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
		if (how)
			assert_int_equal(record_offcpu_seen(f.o, 71, how == 1 ? 7 : 6, &unwound), 0);
		assert_int_equal(record_offcpu_seen(f.o, 99, 7, &unwound), 0);
		end(&f, 5000);
		assert_int_equal(f.n, 1);
		assert_wait(&f.got[0], 71, 5000, 4000, how == 1 ? 0x70 : 0);
		record_offcpu_free(f.o);
	}
	remove_proc(dir);
}

/* Before looks are dealt with the wait could be over. */
static void who_is_found_in_one_wait_while_events_are_off_is_read_at_once(void **state)
{
	static const uint64_t ms[] = {1, 4, 6, 8, 40, 42}, asked[] = {1, 1, 2, 2, 2, 3};
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct fixture f;
	double width;

	(void)state;
	make_proc(dir);
	begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		assert_false(record_offcpu_tell(f.o, OFFCPU_CLOSE, ms[i] * NS_PER_MS) || record_offcpu_look(f.o, ms[i] * NS_PER_MS, &width));
		assert_int_equal(f.nasked, asked[i]);
	}
	record_offcpu_free(f.o);
	remove_proc(dir);
}

#define CROWD 5000 /* threads, more than are looked at in a round */
#define CROWD_TID 1000 /* of the first */

struct crowd {
	struct record_offcpu *o;
	uint64_t begin_ns;
	bool asked[CROWD];
	size_t nasked;
};

static int take_crowd_wait(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound,
			   const struct offcpu_idx_wait *row)
{
	(void)ctx, (void)sample, (void)unwound, (void)row;
	return 0;
}

static int take_crowd_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	(void)ctx, (void)thread;
	return 0;
}

static int take_crowd_ask(void *ctx, int32_t pid, int32_t tid)
{
	struct crowd *c = ctx;

	assert_int_equal(pid, PID);
	c->nasked += !c->asked[tid - CROWD_TID];
	c->asked[tid - CROWD_TID] = true;
	return 0;
}

/* In /proc all are thread 71. */
static void begin_crowd(struct crowd *c, const char *dir)
{
	char path[128];

	*c = (struct crowd){.begin_ns = clock_monotonic_ns()};
	assert_int_equal(record_offcpu_new(&(struct record_offcpu_options){.begin_ns = c->begin_ns, .proc = dir}, &c->o), 0);
	record_offcpu_to(c->o, &(struct record_offcpu_writer){c, take_crowd_wait, take_crowd_thread, NULL, take_crowd_ask, NULL});
	for (int32_t i = 0; i < CROWD; i++) {
		const struct perfdata_record record = {.type = PERF_RECORD_FORK, .pid = PID, .tid = CROWD_TID + i, .cpu = -1};

		snprintf(path, sizeof(path), "%s/%d", dir, CROWD_TID + i);
		assert_int_equal(symlink("71", path), 0);
		assert_int_equal(record_offcpu_apply(c->o, &record), 0);
	}
	assert_false(record_offcpu_round(c->o) || record_offcpu_round(c->o));
}

static void end_crowd(struct crowd *c, const char *dir)
{
	char path[128];

	for (int32_t i = 0; i < CROWD; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, CROWD_TID + i);
		unlink(path);
	}
	remove_proc(dir);
	record_offcpu_free(c->o);
}

/* However often something is lost. */
static void all_threads_are_looked_at_after_losses(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct crowd c;

	(void)state;
	make_proc(dir);
	begin_crowd(&c, dir);
	assert_int_equal(c.nasked, CROWD);
	memset(c.asked, 0, sizeof(c.asked));
	c.nasked = 0;
	for (int round = 0; round < 4; round++) {
		assert_int_equal(record_offcpu_lost(c.o, -1, clock_monotonic_ns()), 0);
		assert_int_equal(record_offcpu_round(c.o), 0);
		/* Of the first round some are not dealt with yet. */
		if (!round)
			assert_true(c.nasked < CROWD);
	}
	assert_int_equal(c.nasked, CROWD);
	end_crowd(&c, dir);
}

/* Each thread runs a tenth of the time. */
static void write_tenth(const struct crowd *c, const char *dir, uint64_t time_ns)
{
	char text[80];

	snprintf(text, sizeof(text), "%llu 20 7\n", 500 + (unsigned long long)(time_ns - c->begin_ns) / 10);
	write_stat(dir, text);
}

static void all_threads_are_looked_at_behind_windows(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct crowd c;
	double width;

	(void)state;
	make_proc(dir);
	begin_crowd(&c, dir);
	uint64_t now = c.begin_ns;

	for (int i = 0; i < 6; i++) {
		now += NS_PER_MS;
		write_tenth(&c, dir, now);
		assert_int_equal(record_offcpu_tell(c.o, i < 5 ? OFFCPU_CLOSE : OFFCPU_WHOLE, now), 0);
		assert_int_equal(record_offcpu_look(c.o, now, &width), 0);
		assert_true(i == 0 || (width > 0.0999 * CROWD && width < 0.1001 * CROWD));
		assert_int_equal(record_offcpu_round(c.o), 0);
		if (i < 5)
			assert_int_equal(record_offcpu_tell(c.o, OFFCPU_OPEN, now += 1000), 0);
	}
	/* By then they are to be done. */
	const struct perfdata_record late = {.type = PERF_RECORD_FORK, .time_ns = clock_monotonic_ns() + 3 * NS_PER_S, .pid = PID,
					     .tid = CROWD_TID + CROWD, .cpu = -1};

	assert_int_equal(record_offcpu_apply(c.o, &late), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(record_offcpu_round(c.o), 0);
	assert_int_equal(record_offcpu_finish(c.o, late.time_ns + NS_PER_S), 0);
	assert_int_equal(record_offcpu_result(c.o).unknown_ns, 0);
	end_crowd(&c, dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_has_the_stack_with_which_it_began),
		cmocka_unit_test(threads_are_those_that_were_there_or_were_created),
		cmocka_unit_test(who_executes_a_program_goes_on_as_its_first_thread),
		cmocka_unit_test(an_id_that_is_used_again_is_another_thread),
		cmocka_unit_test(short_waits_are_counted_only),
		cmocka_unit_test(what_was_lost_is_not_known),
		cmocka_unit_test(when_a_wait_ended_may_be_known_long_after),
		cmocka_unit_test(what_a_full_ring_may_have_lost_is_not_known),
		cmocka_unit_test(what_a_ring_lost_is_lost_in_its_window),
		cmocka_unit_test(a_wait_goes_on_whatever_was_lost),
		cmocka_unit_test(waits_are_told_in_the_round_after_theirs),
		cmocka_unit_test(who_woke_is_told_once_and_named_by_each_wait),
		cmocka_unit_test(pids_of_the_first_namespace_are_learnt),
		cmocka_unit_test(a_thread_that_sleeps_all_the_time_waits),
		cmocka_unit_test(who_is_found_in_one_wait_while_events_are_off_is_read_at_once),
		cmocka_unit_test(all_threads_are_looked_at_after_losses),
		cmocka_unit_test(all_threads_are_looked_at_behind_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
