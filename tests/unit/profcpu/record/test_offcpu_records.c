/* profcpu/record/offcpu_records: waits from records of switches, threads and wakings. */
#include "tests/unit/cpu_limit.h"
#include "tests/unit/allocated_bytes.h"
#include "tests/unit/record_offcpu_check.h"
#include "tests/unit/under_valgrind.h"

static void a_wait_has_the_stack_with_which_it_began(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	out(&f, 2000, 71, 0x10);
	in(&f, 2500, 71);
	out(&f, 2600, 71,
	    0); /* its sample was lost, and the stack of another wait would be wrong */
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
	assert_true(f.got[0].row.flags == 0 && f.got[0].row.count == 1 &&
		    f.got[0].row.runnable_ns == 0);
	assert_true(f.got[2].row.flags == OFFCPU_IDX_CUT_END);
	assert_int_equal(f.nthreads, 1);
	assert_true(f.threads[0].tid == 71 && f.threads[0].pid == PID &&
		    f.threads[0].begin_ns == BEGIN_NS && f.threads[0].end_ns == 4000 &&
		    f.threads[0].blocked_ns == 1600 && f.threads[0].running_ns == 1400 &&
		    f.threads[0].unknown_ns == 0 && f.threads[0].no_stack_ns == 100);
	record_offcpu_free(f.o);
}

static void threads_existed_before_or_were_created(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, 2, 2, 0); /* kthreadd and a kernel thread */
	task(&f, PERF_RECORD_FORK, 0, 9, 9, 2);
	task(&f, PERF_RECORD_FORK, 0, 0, 0, 0); /* in another PID namespace */
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
	assert_true(f.nthreads == 1 && f.threads[0].tid == 72 && f.threads[0].runnable_ns == 100 &&
		    f.threads[0].end_ns == 2400);
	record_offcpu_free(f.o);
}

static void an_exec_continues_as_the_first_thread(void **state)
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

/* The cost of an exec depends on the threads of its process, not on all threads. */
static void execs_are_fast_beside_many_threads(void **state)
{
	const int32_t first = 100000, n = 50000;
	struct fixture f;

	(void)state;
	begin(&f, 0);
	for (int32_t i = 0; i < n; i++)
		task(&f, PERF_RECORD_FORK, 2000, first + i, first + i, PID);
	/* One more process, whose second thread an exec ends. */
	task(&f, PERF_RECORD_FORK, 2000, first, first + n, first);
	clock_t begin_clock = clock();

	for (int32_t i = 0; i < n; i++)
		exec(&f, 3000, first + i);
	assert_true(clock() - begin_clock < cpu_limit(1));
	assert_false(record_offcpu_wants(f.o, first + n));
	assert_true(record_offcpu_wants(f.o, first));
	record_offcpu_free(f.o);
}

/* An id that a thread of another process had does not belong to that process any more. */
static void an_exec_ends_only_its_own_threads(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 2000, PID, 75, PID);
	task(&f, PERF_RECORD_FORK, 2000, PID, 76, PID);
	task(&f, PERF_RECORD_FORK, 2000, PID, 77, PID);
	task(&f, PERF_RECORD_EXIT, 2100, PID, 76, PID);
	task(&f, PERF_RECORD_FORK, 2200, 80, 76, 80);
	exec(&f, 3000, PID);
	assert_false(record_offcpu_wants(f.o, 75));
	assert_true(record_offcpu_wants(f.o, 76));
	assert_false(record_offcpu_wants(f.o, 77));
	exec(&f, 3100, 80);
	assert_false(record_offcpu_wants(f.o, 76));
	record_offcpu_free(f.o);
}

static void a_reused_id_is_another_thread(void **state)
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

/* Records of processes are taken before switches are recorded. */
static void threads_of_earlier_records_begin_with_the_recording(void **state)
{
	struct fixture f;

	(void)state;
	begin_with(&f, &(struct record_offcpu_options){.first_pids = true, .proc = "/nowhere"});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	task(&f, PERF_RECORD_FORK, 0, PID, 72, PID);
	task(&f, PERF_RECORD_FORK, 400, PID, 73, PID); /* created */
	task(&f, PERF_RECORD_EXIT, 500, PID, 72, PID);
	task(&f, PERF_RECORD_FORK, 600, PID, 74, PID);
	exec(&f, 700, 80);
	assert_int_equal(record_offcpu_round(f.o), 0);
	assert_int_equal(record_offcpu_threads(f.o), 4);
	assert_int_equal(f.nrequested, 0);
	task(&f, PERF_RECORD_EXIT, 800, 80, 80, PID);
	assert_int_equal(record_offcpu_begin(f.o, BEGIN_NS), 0);
	assert_int_equal(f.nrequested, 3);
	/* Drained after the begin. */
	task(&f, PERF_RECORD_FORK, 900, PID, 75, PID);
	assert_int_equal(f.requested, 75);
	out(&f, 1500, 73, 0x10);
	in(&f, 1600, 73);
	end(&f, 2000);
	assert_int_equal(f.n, 1);
	assert_wait(&f.got[0], 73, 1600, 100, 0x10);
	assert_int_equal(f.nthreads, 4);
	for (size_t i = 0; i < f.nthreads; i++)
		assert_int_equal(f.threads[i].begin_ns, BEGIN_NS);
	assert_int_equal(record_offcpu_result(f.o).life_ns, 4000);
	record_offcpu_free(f.o);
}

static int ignore_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	(void)ctx, (void)thread;
	return 0;
}

static int ignore_wait(void *ctx, const struct perfdata_offcpu *sample,
		       const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	(void)ctx, (void)sample, (void)unwound, (void)row;
	return 0;
}

static void ended_threads_take_no_memory(void **state)
{
	struct fixture f;
	size_t before = 0;

	(void)state;
	if (under_valgrind())
		skip(); /* its allocations are not counted */
	begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = "/nowhere"});
	record_offcpu_to(f.o, &(struct record_offcpu_writer){
				      .ctx = &f, .wait = ignore_wait, .thread = ignore_thread});
	for (int32_t i = 1; i <= 300000; i++) {
		uint64_t time_ns = BEGIN_NS + 10 * (uint64_t)i;

		task(&f, PERF_RECORD_FORK, time_ns, i, i, PID);
		assert_int_equal(record_offcpu_learn(f.o, 1000000 + i, i), 0);
		assert_int_equal(record_offcpu_known(f.o, 1000000 + i), i);
		task(&f, PERF_RECORD_EXIT, time_ns + 5, i, i, PID);
		if (!(i % 1000))
			assert_int_equal(record_offcpu_round(f.o), 0);
		if (i == 10000)
			before = allocated_bytes();
	}
	assert_true(allocated_bytes() < before + 100000);
	record_offcpu_free(f.o);
}

static void a_recording_that_never_began_has_no_threads(void **state)
{
	struct fixture f;

	(void)state;
	begin_with(&f, &(struct record_offcpu_options){.proc = "/nowhere"});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	end(&f, 2000);
	assert_int_equal(f.n + f.nthreads, 0);
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

static void time_of_lost_records_is_unknown(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	out(&f, 2000, 71, 0x10);
	in(&f, 2100, 71);
	/* Its CPU lost nothing before 2200, other CPUs nothing at all. */
	record_seen(&f, 3, 2200);
	assert_int_equal(record_offcpu_lost(f.o, 3, 2500), 0);
	out(&f, 2600, 71, 0x10);
	in(&f, 2700, 71);
	end(&f, 3000);
	assert_int_equal(f.n, 2);
	assert_int_equal(record_offcpu_result(f.o).unknown_ns, 400);
	assert_int_equal(record_offcpu_result(f.o).unwatched_ns, 0);
	record_offcpu_free(f.o);
}

/* The last record of CPU 3 has time 2200, of CPU 4 2300. */
static void losses_of_a_full_ring_make_time_unknown(void **state)
{
	static const struct {
		uint64_t full_ns[2]; /* of CPU 3 and 4; 0: not full */
		bool before;         /* rounds follow; otherwise it was found full at the end */
		uint64_t seen_ns;    /* on CPU 3, in the next round */
		uint64_t unknown_ns;
	} cases[] = {
		{{0, 0}, true, 0, 0},
		{{2500, 0}, true, 0, 800},
		{{2500, 0}, false, 0, 800},
		{{0, 2500}, false, 0, 700},
		{{2500, 2500}, false, 0, 800},
		{{3100, 3100}, false, 0, 800}, /* when rings were given back, after the end */
		{{2500, 0}, true, 2400, 600},  /* record from before the ring was full */
		{{2500, 0},
		 true,
		 2600,
		 0}, /* the kernel has already reported the loss before this record */
		{{9999, 0}, true, 0, 800},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		begin(&f, 0);
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		out(&f, 2000, 71, 0x10);
		in(&f, 2100, 71);
		record_seen(&f, 3, 2200);
		record_seen(&f, 4, 2300);
		assert_int_equal(record_offcpu_round(f.o), 0);
		for (int32_t cpu = 0; cpu < 2; cpu++)
			if (cases[i].full_ns[cpu])
				assert_int_equal(
					record_offcpu_full(f.o, 3 + cpu, cases[i].full_ns[cpu]), 0);
		assert_int_equal(record_offcpu_full(f.o, -1, 2500), 0); /* no such sample */
		if (cases[i].seen_ns)
			record_seen(&f, 3, cases[i].seen_ns);
		for (int n = 0; cases[i].before && n < 3; n++)
			assert_int_equal(record_offcpu_round(f.o), 0);
		end(&f, 3000);
		assert_int_equal(record_offcpu_result(f.o).unknown_ns, cases[i].unknown_ns);
		record_offcpu_free(f.o);
	}
}

static void waking(struct fixture *f, uint64_t time_ns, int32_t tid, int32_t by, uint64_t ip,
		   uint8_t flags)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, ip};
	const struct unwound unwound = {
		.callchain = words, .ncallchain = 2, .grade = UNWIND_COMPLETE};
	const struct perfdata_record record = {
		.type = PERF_RECORD_SAMPLE, .time_ns = time_ns, .pid = 90, .tid = by, .cpu = 1};

	assert_int_equal(record_offcpu_waking(f->o, tid, &record, flags, &unwound), 0);
}

/* No sample is older than those of the round before the last one, as perf needs it. */
static void the_end_of_a_wait_may_be_known_late(void **state)
{
	uint64_t newest_ns = 0, before_ns[2] = {0};
	struct fixture f;
	size_t seen = 0;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	task(&f, PERF_RECORD_FORK, 0, PID, 72, PID);
	out(&f, 2000, 71, 0x10);
	record_seen(&f, 3, 2200);
	assert_int_equal(record_offcpu_lost(f.o, 3, 2500), 0);
	for (uint64_t now = 3000; now < 9000; now += 1000) {
		out(&f, now, 72, 0x20);
		in(&f, now + 500, 72);
		if (now == 7000)
			in(&f, 7800, 71);
		assert_int_equal(record_offcpu_round(f.o), 0);
		before_ns[1] = before_ns[0];
		before_ns[0] = newest_ns;
		for (; seen < f.n; seen++) {
			assert_true(f.got[seen].sample.time_ns >= before_ns[1]);
			newest_ns = f.got[seen].sample.time_ns > newest_ns
					    ? f.got[seen].sample.time_ns
					    : newest_ns;
		}
	}
	/* A missing switch in. */
	out(&f, 10000, 71, 0x11);
	waking(&f, 10100, 71, 90, 0xBB, 0);
	out(&f, 12000, 71, 0x12);
	in(&f, 12300, 71);
	end(&f, 13000);
	for (size_t i = 0; i < f.n; i++) {
		const struct got *g = &f.got[i];

		/* Found in the round after that of its switch in. */
		if (g->words[1] == 0x10)
			assert_true(g->sample.time_ns == 6500 && g->sample.off_ns == 200 &&
				    g->row.end_ns == 2200);
		else if (g->words[1] == 0x11)
			assert_true(g->sample.time_ns == 10100 && g->sample.off_ns == 100);
		else
			assert_int_equal(g->row.end_ns, 0);
	}
	assert_int_equal(f.n, 6 + 3);
	record_offcpu_free(f.o);
}

static void waits_are_reported_one_round_later(void **state)
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

static void a_waker_is_stored_once_and_named_by_each_wait(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	for (uint64_t i = 0; i < 3; i++) {
		out(&f, 2000 + i * 1000, 71, 0x10);
		waking(&f, 2300 + i * 1000, 71, i < 2 ? 91 : 92, 0x20,
		       i == 2 ? OFFCPU_IDX_SOFTIRQ
			      : 0); /* the same twice, then another with the same stack */
		in(&f, 2400 + i * 1000, 71);
	}
	out(&f, 5000, 71, 0x10);
	waking(&f, 5500, 71, 91, 0x30, OFFCPU_IDX_INTERRUPT);
	in(&f, 5600, 71);
	out(&f, 6000, 71, 0x10);
	in(&f, 6100, 71);
	end(&f, 7000);
	assert_int_equal(f.nwakers, 3);
	assert_true(f.wakers[0].tid == 91 && f.wakers[0].pid == 90 && f.wakers[0].time_ns == 2300 &&
		    f.wakers[1].tid == 92);
	assert_true(f.wakers[2].tid == 0 && f.wakers[2].pid == 0); /* not the interrupted thread */
	assert_int_equal(f.n, 5);
	assert_true(f.got[0].row.waker == 91 && f.got[0].row.waker_off == WAKER_OFF &&
		    f.got[0].row.woken_ns == 2300 && f.got[0].row.runnable_ns == 100 &&
		    f.got[0].row.flags == 0);
	assert_true(f.got[1].row.waker == 91 && f.got[1].row.waker_off == WAKER_OFF);
	assert_true(f.got[2].row.waker == 92 && f.got[2].row.waker_off == WAKER_OFF + 1 &&
		    f.got[2].row.flags == OFFCPU_IDX_SOFTIRQ);
	assert_true(f.got[3].row.waker == 0 && f.got[3].row.waker_off == WAKER_OFF + 2 &&
		    f.got[3].row.flags == OFFCPU_IDX_INTERRUPT);
	assert_true(f.got[4].row.waker == 0 && f.got[4].row.waker_off == 0 &&
		    f.got[4].row.flags == 0);
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
	assert_int_equal(record_offcpu_known(f.o, 72), 0); /* not one of the threads */
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

/* Each wait has another stack. */
static void stacks_over_an_eighth_of_the_memory_are_left_out_and_counted(void **state)
{
	const uint64_t waits = 12;
	struct fixture f;

	(void)state;
	begin_with(&f, &(struct record_offcpu_options){
			       .begin_ns = BEGIN_NS, .proc = "/nowhere", .memory = 8 * 500});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	for (uint64_t i = 1; i <= waits; i++) {
		out(&f, BEGIN_NS + 100 * i, 71, 0x100 * i);
		in(&f, BEGIN_NS + 100 * i + 50, 71);
	}
	end(&f, BEGIN_NS + 100 * waits + 100);
	struct record_offcpu_result r = record_offcpu_result(f.o);

	assert_int_equal(r.waits, waits);
	assert_int_equal(r.stacks_bytes_max, 500);
	assert_in_range(r.stacks_refused, waits - 8, waits - 3);
	record_offcpu_free(f.o);
}

static int count_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	(void)thread;
	(*(uint64_t *)ctx)++;
	return 0;
}

/* Threads that end make room for others. */
static void threads_over_an_eighth_of_the_memory_are_left_out_and_counted(void **state)
{
	const uint64_t memory = UINT64_C(8) * 36 * RECORD_OFFCPU_THREAD_BYTES;
	const int32_t most = RECORD_OFFCPU_THREADS_MIN + 36;
	struct fixture f;
	uint64_t threads = 0;

	(void)state;
	for (int created = 0; created < 2; created++) {
		begin_with(&f, &(struct record_offcpu_options){
				       .begin_ns = BEGIN_NS, .proc = "/nowhere", .memory = memory});
		record_offcpu_to(f.o, &(struct record_offcpu_writer){.ctx = &threads,
								     .wait = ignore_wait,
								     .thread = count_thread});
		for (int32_t i = 0; i < 150; i++)
			task(&f, PERF_RECORD_FORK, created ? BEGIN_NS + 10 : 0, PID, PID + i, PID);
		assert_int_equal(record_offcpu_result(f.o).threads_refused, 150 - most);
		assert_true(record_offcpu_wants(f.o, PID + most - 1));
		assert_false(record_offcpu_wants(f.o, PID + most));
		for (int32_t i = 0; i < 10; i++)
			task(&f, PERF_RECORD_EXIT, BEGIN_NS + 100, PID, PID + i, PID);
		for (int i = 0; i < 2; i++)
			assert_int_equal(record_offcpu_round(f.o), 0);
		for (int32_t i = 200; i < 211; i++)
			task(&f, PERF_RECORD_FORK, BEGIN_NS + 200, PID, PID + i, PID);
		assert_int_equal(record_offcpu_result(f.o).threads_refused, 150 - most + 1);
		end(&f, BEGIN_NS + 1000);
		assert_int_equal(threads, most + 10);
		threads = 0;
		record_offcpu_free(f.o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_over_an_eighth_of_the_memory_are_left_out_and_counted),
		cmocka_unit_test(threads_over_an_eighth_of_the_memory_are_left_out_and_counted),
		cmocka_unit_test(a_wait_has_the_stack_with_which_it_began),
		cmocka_unit_test(threads_existed_before_or_were_created),
		cmocka_unit_test(an_exec_continues_as_the_first_thread),
		cmocka_unit_test(execs_are_fast_beside_many_threads),
		cmocka_unit_test(an_exec_ends_only_its_own_threads),
		cmocka_unit_test(a_reused_id_is_another_thread),
		cmocka_unit_test(threads_of_earlier_records_begin_with_the_recording),
		cmocka_unit_test(ended_threads_take_no_memory),
		cmocka_unit_test(a_recording_that_never_began_has_no_threads),
		cmocka_unit_test(short_waits_are_counted_only),
		cmocka_unit_test(time_of_lost_records_is_unknown),
		cmocka_unit_test(the_end_of_a_wait_may_be_known_late),
		cmocka_unit_test(losses_of_a_full_ring_make_time_unknown),
		cmocka_unit_test(waits_are_reported_one_round_later),
		cmocka_unit_test(a_waker_is_stored_once_and_named_by_each_wait),
		cmocka_unit_test(pids_of_the_first_namespace_are_learnt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
