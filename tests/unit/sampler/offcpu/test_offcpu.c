/* Waits from events while all events are recorded. */
#include "sampler/offcpu/offcpu.h"
#include "tests/unit/cpu_limit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOT_MAX 64

struct fixture {
	struct offcpu *o;
	struct offcpu_interval got[GOT_MAX];
	size_t ngot;
	pid_t tids[GOT_MAX];
	struct offcpu_totals totals[GOT_MAX];
	size_t nthreads;
	uint64_t unknown_ns[GOT_MAX]; /* by tid; reported, of the present thread */
	uint64_t last_unknown_ns;     /* end of the last one */
	int fail_with;
};

static int take_interval(void *ctx, const struct offcpu_interval *i)
{
	struct fixture *f = ctx;

	assert_true(f->ngot < GOT_MAX);
	f->got[f->ngot++] = *i;
	return f->fail_with;
}

static int take_unknown(void *ctx, pid_t tid, uint64_t from_ns, uint64_t to_ns)
{
	struct fixture *f = ctx;

	assert_true(from_ns < to_ns && tid < GOT_MAX);
	f->unknown_ns[tid] += to_ns - from_ns;
	f->last_unknown_ns = to_ns;
	return 0;
}

static int take_thread(void *ctx, pid_t tid, const struct offcpu_totals *t)
{
	struct fixture *f = ctx;

	assert_true(f->nthreads < GOT_MAX);
	f->tids[f->nthreads] = tid;
	f->totals[f->nthreads++] = *t;
	/* Parts of each thread always add up to its life. */
	assert_int_equal(t->running_ns + t->blocked_ns + t->runnable_ns + t->unknown_ns,
			 t->end_ns - t->begin_ns);
	/* The time in which its state is unknown is reported, except while throttled. */
	assert_int_equal(f->unknown_ns[tid], t->unknown_ns - t->unwatched_ns);
	f->unknown_ns[tid] = 0;
	return 0;
}

static void begin(struct fixture *f, uint64_t min_ns)
{
	const struct offcpu_listener listener = {.ctx = f,
						 .interval = take_interval,
						 .unknown = take_unknown,
						 .thread = take_thread};

	*f = (struct fixture){0};
	assert_int_equal(offcpu_new(1000, min_ns, &listener, &f->o), 0);
}

static void end(struct fixture *f, uint64_t end_ns)
{
	assert_int_equal(offcpu_finish(f->o, end_ns), 0);
}

static void add(struct fixture *f, enum offcpu_kind kind, uint64_t time_ns, pid_t tid)
{
	assert_int_equal(offcpu_add(f->o, &(struct offcpu_event){.time_ns = time_ns,
								 .tid = tid,
								 .kind = (uint8_t)kind}),
			 0);
}

static void out(struct fixture *f, uint64_t time_ns, pid_t tid, uint32_t stack, bool preempted)
{
	assert_int_equal(
		offcpu_add(f->o, &(struct offcpu_event){.time_ns = time_ns,
							.tid = tid,
							.kind = OFFCPU_OUT,
							.stack = stack,
							.flags = preempted ? OFFCPU_PREEMPTED : 0}),
		0);
}

static void wake(struct fixture *f, uint64_t time_ns, pid_t tid, pid_t by, uint32_t stack)
{
	assert_int_equal(offcpu_add(f->o, &(struct offcpu_event){.time_ns = time_ns,
								 .tid = tid,
								 .kind = OFFCPU_WAKING,
								 .by = by,
								 .stack = stack}),
			 0);
}

static void poll_thread(struct fixture *f, uint64_t time_ns, pid_t tid, uint64_t run_ns,
			uint64_t wait_ns, uint64_t count)
{
	assert_int_equal(
		offcpu_add_poll(f->o, tid, time_ns, &(struct schedstat){run_ns, wait_ns, count}),
		0);
}

static const struct offcpu_totals *totals_of(const struct fixture *f, pid_t tid)
{
	for (size_t i = f->nthreads; i-- > 0;)
		if (f->tids[i] == tid)
			return &f->totals[i];
	fail_msg("thread %d has no totals", tid);
	abort();
}

static void assert_totals(const struct fixture *f, pid_t tid, uint64_t running, uint64_t blocked,
			  uint64_t runnable, uint64_t unknown)
{
	const struct offcpu_totals *t = totals_of(f, tid);

	assert_int_equal(t->running_ns, running);
	assert_int_equal(t->blocked_ns, blocked);
	assert_int_equal(t->runnable_ns, runnable);
	assert_int_equal(t->unknown_ns, unknown);
	assert_int_equal(t->unwatched_ns, 0);
}

static void a_wait_is_blocked_until_it_is_woken_and_then_runnable(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 0, 7);
	out(&f, 2000, 7, 5, false);
	wake(&f, 2600, 7, 9, 6);
	wake(&f, 2700, 7, 8, 4); /* only the first counts */
	add(&f, OFFCPU_IN, 3000, 7);
	out(&f, 4000, 7, 3, true);
	add(&f, OFFCPU_IN, 4500, 7);
	end(&f, 5000);
	assert_int_equal(f.ngot, 2);
	const struct offcpu_interval *i = &f.got[0];

	assert_true(i->tid == 7 && i->waker == 9 && i->stack == 5 && i->waker_stack == 6 &&
		    i->wait == OFFCPU_BLOCKED);
	assert_true(i->out_ns == 2000 && i->woken_ns == 2600 && i->in_ns == 3000);
	assert_true(i->blocked_ns == 600 && i->runnable_ns == 400 && i->count == 1);
	assert_true(!i->cut_begin && !i->cut_end && !i->estimated);
	i = &f.got[1];
	assert_true(i->stack == 3 && i->wait == OFFCPU_RUNNABLE && i->blocked_ns == 0 &&
		    i->runnable_ns == 500);
	assert_int_equal(i->waker_stack, OFFCPU_NO_STACK);
	assert_totals(&f, 7, 1000 + 1000 + 500, 600, 900, 0);
	offcpu_free(f.o);
}

static void waits_are_cut_to_the_recording(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 100000); /* a cut wait may be long, so it does not count as short */
	add(&f, OFFCPU_BEGIN, 0, 7);
	wake(&f, 1700, 7, 9, 6);
	add(&f, OFFCPU_IN, 2000, 7);
	out(&f, 3000, 7, 5, false);
	end(&f, 4000);
	assert_int_equal(f.ngot, 2);
	assert_true(f.got[0].cut_begin && !f.got[0].cut_end && f.got[0].stack == OFFCPU_NO_STACK);
	assert_true(f.got[0].out_ns == 1000 && f.got[0].in_ns == 2000 && f.got[0].waker == 9 &&
		    f.got[0].waker_stack == 6);
	assert_true(f.got[0].blocked_ns == 700 && f.got[0].runnable_ns == 300);
	assert_true(!f.got[1].cut_begin && f.got[1].cut_end && f.got[1].stack == 5 &&
		    f.got[1].in_ns == 4000);
	assert_totals(&f, 7, 1000, 1700, 300, 0);
	assert_int_equal(totals_of(&f, 7)->no_stack_ns, 1000);
	offcpu_free(f.o);
}

/* No event of them is seen. The scheduler's own numbers show how they spent their time. */
static void threads_without_events_are_known_by_their_polls(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	for (pid_t tid = 1; tid <= 4; tid++)
		add(&f, OFFCPU_BEGIN, 0, tid);
	for (pid_t tid = 1; tid <= 3; tid++)
		poll_thread(&f, 1000, tid, 50, 60, 7);
	poll_thread(&f, 11000, 1, 50, 60, 7);   /* slept all the time */
	poll_thread(&f, 11000, 2, 9000, 60, 7); /* ran all the time; the last tick is missing */
	poll_thread(&f, 11000, 3, 4050, 1060, 9);
	end(&f, 11000);
	assert_totals(&f, 1, 0, 10000, 0, 0);
	assert_totals(&f, 2, 10000, 0, 0, 0);
	assert_totals(&f, 3, 4000, 5000, 1000, 0);
	assert_totals(&f, 4, 0, 0, 0, 10000); /* never polled */
	assert_int_equal(f.ngot, 2);
	assert_true(f.got[0].cut_begin && f.got[0].cut_end && f.got[0].stack == OFFCPU_NO_STACK);
	offcpu_free(f.o);
}

static void earlier_waits_have_the_stack_that_was_read(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	for (pid_t tid = 1; tid <= 3; tid++) {
		add(&f, OFFCPU_BEGIN, 0, tid);
		poll_thread(&f, 1000, tid, 50, 60, 7);
	}
	assert_int_equal(offcpu_round(f.o), 0);
	assert_int_equal(offcpu_round(f.o), 0);
	offcpu_add_stack(f.o, 1, 7, 33);
	offcpu_add_stack(f.o, 2, 7, 34);
	offcpu_add_stack(f.o, 3, 8, 35); /* of the next wait */
	offcpu_add_stack(f.o, 99, 8, 35);
	add(&f, OFFCPU_IN, 2000, 1);
	out(&f, 3000, 1, 5, false);
	add(&f, OFFCPU_IN, 2500, 3);
	poll_thread(&f, 5000, 2, 50, 60, 7);
	end(&f, 5000);
	assert_int_equal(f.ngot, 4);
	/* Those of 1 and 3 end first, but wait for polls that do not come. */
	assert_true(f.got[0].tid == 1 && f.got[0].stack == 5);
	assert_true(f.got[1].tid == 1 && f.got[1].stack == 33);
	assert_true(f.got[2].tid == 2 && f.got[2].stack == 34);
	assert_true(f.got[3].tid == 3 && f.got[3].stack == OFFCPU_NO_STACK);
	offcpu_free(f.o);
}

static void short_waits_are_accounted_for_and_no_intervals(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 500);
	add(&f, OFFCPU_BEGIN, 0, 7);
	out(&f, 2000, 7, 5, false);
	add(&f, OFFCPU_IN, 2499, 7);
	out(&f, 3000, 7, 5, false);
	add(&f, OFFCPU_IN, 3500, 7);
	out(&f, 4000, 7, 5, true);
	add(&f, OFFCPU_IN, 4100, 7);
	end(&f, 5000);
	assert_int_equal(f.ngot, 1);
	assert_int_equal(f.got[0].out_ns, 3000);
	assert_totals(&f, 7, 4000 - 1099, 999, 100, 0);
	assert_int_equal(totals_of(&f, 7)->short_ns, 599);
	assert_int_equal(totals_of(&f, 7)->short_count, 2);
	assert_int_equal(offcpu_counts(f.o)->intervals, 1);
	offcpu_free(f.o);
}

static void threads_are_recorded_from_begin_to_end(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_CREATED, 2000, 7);
	add(&f, OFFCPU_IN, 2300, 7);
	add(&f, OFFCPU_END, 3000, 7);
	out(&f, 3001, 7, 1, false);       /* its last switch, after its end */
	add(&f, OFFCPU_CREATED, 4000, 7); /* another thread */
	add(&f, OFFCPU_BEGIN, 4001, 7);
	add(&f, OFFCPU_IN, 4100, 7);
	out(&f, 4200, 9, 1, false); /* not one of our threads */
	end(&f, 5000);
	assert_int_equal(f.nthreads, 2);
	assert_true(f.totals[0].begin_ns == 2000 && f.totals[0].end_ns == 3000);
	assert_true(f.totals[0].running_ns == 700 && f.totals[0].runnable_ns == 300);
	assert_true(f.totals[1].begin_ns == 4000 && f.totals[1].end_ns == 5000);
	assert_true(f.totals[1].running_ns == 900 && f.totals[1].runnable_ns == 100);
	assert_int_equal(offcpu_counts(f.o)->others, 2);
	assert_true(f.ngot == 2 && f.got[0].wait == OFFCPU_RUNNABLE &&
		    f.got[0].stack == OFFCPU_NO_STACK);
	offcpu_free(f.o);
}

/* Rings of several CPUs are read one after the other. */
static void events_are_processed_in_order_of_time(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 0, 7);
	add(&f, OFFCPU_IN, 3000, 7);
	out(&f, 2000, 7, 5, false);
	assert_int_equal(offcpu_round(f.o), 0);
	assert_int_equal(f.ngot, 0);
	wake(&f, 2500, 7, 9, 6); /* arrived later, from another CPU */
	out(&f, 4000, 7, 8, false);
	assert_int_equal(offcpu_round(f.o), 0);
	assert_int_equal(f.ngot, 1);
	assert_true(f.got[0].waker == 9 && f.got[0].blocked_ns == 500);
	assert_int_equal(offcpu_round(f.o), 0);
	add(&f, OFFCPU_IN, 3999, 7);
	assert_int_equal(offcpu_round(f.o), 0);
	assert_int_equal(offcpu_counts(f.o)->late, 1);
	end(&f, 5000);
	assert_totals(&f, 7, 1000 + 1000, 500 + 1000, 500, 0);
	offcpu_free(f.o);
}

static void a_waker_may_be_early(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 0, 7);
	add(&f, OFFCPU_IN, 1000000, 7);
	wake(&f, 1999000, 7, 9, 6);
	out(&f, 2000000, 7, 5, false);
	add(&f, OFFCPU_IN, 2003000, 7);
	wake(&f, 2100000, 7, 9, 6); /* it was awake, and remains so for a long time */
	out(&f, 3000000, 7, 5, false);
	add(&f, OFFCPU_IN, 3500000, 7);
	end(&f, 4000000);
	assert_int_equal(f.ngot, 3);
	assert_true(f.got[1].waker == 9 && f.got[1].waker_stack == 6 && f.got[1].blocked_ns == 0 &&
		    f.got[1].runnable_ns == 3000);
	assert_true(f.got[2].waker == 0 && f.got[2].waker_stack == OFFCPU_NO_STACK &&
		    f.got[2].blocked_ns == 500000);
	offcpu_free(f.o);
}

static void missing_images_are_counted_and_unknown(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 0, 7);
	out(&f, 2000, 7, 5, false);
	out(&f, 3000, 7, 6, false); /* a missing "in" between them */
	add(&f, OFFCPU_IN, 3500, 7);
	add(&f, OFFCPU_IN, 3500, 7); /* reported twice */
	add(&f, OFFCPU_IN, 4500, 7); /* a missing "out" */
	out(&f, 5000, 7, 6, false);
	add(&f, OFFCPU_LOST, 5400, 0);
	out(&f, 5500, 7, 6, false); /* from then to here its state is unknown */
	add(&f, OFFCPU_IN, 6000, 7);
	end(&f, 7000);
	assert_int_equal(offcpu_counts(f.o)->no_in, 1);
	assert_int_equal(offcpu_counts(f.o)->no_out, 1);
	assert_totals(&f, 7, 1000 + 500 + 1000, 500 + 400 + 500, 0, 1000 + 1000 + 100);
	assert_int_equal(f.ngot, 3);
	assert_true(f.got[1].cut_end && f.got[1].in_ns == 5400);
	assert_int_equal(f.last_unknown_ns, 5500);
	offcpu_free(f.o);
}

static void lose(struct fixture *f, uint64_t from_ns, uint64_t until_ns)
{
	assert_int_equal(offcpu_add(f->o, &(struct offcpu_event){.time_ns = from_ns,
								 .until_ns = until_ns,
								 .kind = OFFCPU_LOST}),
			 0);
}

/* The time for many losses among many threads is that of their events, not their product. */
static void losses_visit_only_threads_with_events(void **state)
{
	enum { THREADS = 20000, LOSSES = 20000 };
	struct fixture f = {0};
	clock_t begun = clock();

	(void)state;
	assert_int_equal(offcpu_new(1000, 0, &(struct offcpu_listener){0}, &f.o), 0);
	for (pid_t tid = 1; tid <= THREADS; tid++)
		add(&f, OFFCPU_BEGIN, 1000, tid);
	for (int i = 1; i <= LOSSES; i++) {
		add(&f, i % 2 ? OFFCPU_OUT : OFFCPU_IN, 1000 + 10 * (uint64_t)i, 7);
		add(&f, OFFCPU_LOST, 1005 + 10 * (uint64_t)i, 0);
		if (i % 1000 == 0)
			assert_int_equal(offcpu_round(f.o), 0);
	}
	end(&f, 1000 + 11 * LOSSES);
	assert_int_equal(offcpu_counts(f.o)->doubtful, 0);
	assert_true(clock() - begun < cpu_limit(1));
	offcpu_free(f.o);
}

static void a_thread_without_running_time_waits_on_despite_losses(void **state)
{
	enum {
		X = 20000
	}; /* the distance of polls exceeds the delay of the kernel's counters for running threads
	    */
	struct fixture f;

	(void)state;
	begin(&f, 0);
	/* 7 waits with a stack, 8 has waited all the time, 9 runs.
	 * 10 gets a CPU that reported nothing, 11 is seen before a poll. */
	for (pid_t tid = 7; tid <= 11; tid++) {
		add(&f, OFFCPU_BEGIN, 1000 * X, tid);
		poll_thread(&f, 1000 * X, tid, 50, 60, 5);
	}
	for (pid_t tid = 7; tid <= 11; tid++)
		if (tid != 8)
			add(&f, OFFCPU_IN, 1500 * X, tid);
	out(&f, 2000 * X, 7, 70, false);
	out(&f, 2000 * X, 10, 100, false);
	out(&f, 2000 * X, 11, 110, false);
	lose(&f, 3000 * X, 3500 * X);
	add(&f, OFFCPU_IN, 3600 * X, 11);
	for (pid_t tid = 7; tid <= 10; tid++)
		poll_thread(&f, 4000 * X, tid, tid == 8 ? 50 : 99, 60,
			    tid == 8    ? 5
			    : tid == 10 ? 7
					: 6);
	/* The poll shows that 9 has run on. */
	out(&f, 5000 * X, 9, 90, false);
	add(&f, OFFCPU_IN, 6000 * X, 7);
	poll_thread(&f, 7000 * X, 10, 99, 60, 7);
	add(&f, OFFCPU_IN, 6500 * X, 8);
	end(&f, 7000 * X);
	assert_totals(&f, 7, (500 + 1000) * X, (500 + 4000) * X, 0, 0);
	assert_totals(&f, 8, 500 * X, 5500 * X, 0, 0);
	assert_totals(&f, 9, (1500 + 1000) * X, (500 + 2000) * X, 0, 1000 * X);
	assert_totals(&f, 10, 500 * X, (500 + 1000 + 3000) * X, 0, 1000 * X);
	assert_totals(&f, 11, (500 + 3400) * X, (500 + 1000) * X, 0, 600 * X);
	for (size_t i = 0; i < f.ngot; i++)
		if (f.got[i].tid == 7 && f.got[i].out_ns == 2000 * X)
			assert_true(f.got[i].stack == 70 && f.got[i].in_ns == 6000 * X &&
				    !f.got[i].cut_begin && !f.got[i].cut_end);
	assert_int_equal(offcpu_counts(f.o)->doubtful, 0);
	offcpu_free(f.o);
}

/* Two polls within a tick make it poll_thread as if it had not run. */
static void running_threads_are_not_blocked(void **state)
{
	const uint64_t ms = 1000000;
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 1000, 7);
	poll_thread(&f, 1000, 7, 50, 60, 5);
	lose(&f, 10 * ms, 11 * ms);
	poll_thread(&f, 12 * ms, 7, 900, 60, 6);
	lose(&f, 13 * ms, 14 * ms);
	poll_thread(&f, 15 * ms, 7, 900, 60, 6);
	lose(&f, 16 * ms, 17 * ms);
	poll_thread(&f, 18 * ms, 7, 900, 60, 6);
	end(&f, 50 * ms);
	assert_int_equal(totals_of(&f, 7)->blocked_ns, 0);
	offcpu_free(f.o);
}

static void waits_that_begin_during_losses_are_doubtful(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 1000, 7);
	poll_thread(&f, 1000, 7, 50, 60, 5);
	add(&f, OFFCPU_IN, 1500, 7);
	lose(&f, 1800, 3500);
	out(&f, 2000, 7, 70, false); /* an "in" and an "out" may follow */
	add(&f, OFFCPU_IN, 4000, 7);
	out(&f, 4500, 7, 71, false); /* from here on everything is seen again */
	add(&f, OFFCPU_IN, 5000, 7);
	end(&f, 6000);
	assert_totals(&f, 7, 300 + 500 + 1000, 500 + 500, 0, 200 + 2000);
	offcpu_free(f.o);
}

static void a_woken_thread_counts_as_having_run(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 0, 7);
	out(&f, 2000, 7, 5, false);
	wake(&f, 2700, 7, 9, 6);
	out(&f, 3000, 7, 6, false); /* a missing "in" between them */
	end(&f, 4000);
	assert_int_equal(offcpu_counts(f.o)->no_in, 1);
	assert_totals(&f, 7, 1000 + 300, 700 + 1000, 0, 0);
	assert_true(f.ngot == 2 && f.got[0].waker == 9 && f.got[0].in_ns == 2700);
	offcpu_free(f.o);
}

static void errors_of_the_listener_are_returned(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 0);
	add(&f, OFFCPU_BEGIN, 0, 7);
	add(&f, OFFCPU_IN, 2000, 7);
	f.fail_with = -ENOSPC;
	assert_int_equal(offcpu_finish(f.o, 5000), -ENOSPC);
	offcpu_free(f.o);
	offcpu_free(NULL);
}

static void places_of_threads_are_used_again(void **state)
{
	struct offcpu *o;
	struct offcpu_listener none = {0};

	(void)state;
	assert_int_equal(offcpu_new(0, 0, &none, &o), 0);
	for (uint64_t n = 0; n < OFFCPU_THREADS_MAX + 1000; n++) {
		const struct offcpu_event created = {
			.time_ns = 10 * n, .tid = (pid_t)(n % 4000000), .kind = OFFCPU_CREATED};
		struct offcpu_event ended = created;

		ended.kind = OFFCPU_END;
		ended.time_ns += 5;
		assert_int_equal(offcpu_add(o, &created) | offcpu_add(o, &ended), 0);
		if (n % 1000 == 0)
			assert_int_equal(offcpu_round(o), 0);
	}
	assert_int_equal(offcpu_finish(o, 1000000000), 0);
	assert_int_equal(offcpu_counts(o)->overflow, 0);
	offcpu_free(o);
}

static int sum_lives(void *ctx, pid_t tid, const struct offcpu_totals *t)
{
	(void)tid;
	assert_int_equal(t->running_ns + t->blocked_ns + t->runnable_ns + t->unknown_ns,
			 t->end_ns - t->begin_ns);
	*(uint64_t *)ctx += t->end_ns - t->begin_ns;
	return 0;
}

/*
 * Threads begin and end while throttled: with events off, on, and whole. Those with waits in a
 * window are kept until the next OPEN.
 */
static void a_storm_of_threads_takes_little_memory_while_throttled(void **state)
{
	uint64_t now = 10, lives = 0, n = 0;
	const struct offcpu_listener listener = {.ctx = &lives, .thread = sum_lives};
	struct fixture f = {0};
	size_t most = 0;

	(void)state;
	assert_int_equal(offcpu_new(0, 0, &listener, &f.o), 0);
	for (int cycle = 0; cycle < 200; cycle++) {
		enum offcpu_kind kind = cycle == 199 ? OFFCPU_WHOLE
					: cycle % 2  ? OFFCPU_OPEN
						     : OFFCPU_CLOSE;

		add(&f, kind, now += 10, 0);
		for (int i = 0; i < 1000; i++, n++) {
			pid_t tid = (pid_t)n + 1;

			add(&f, OFFCPU_CREATED, now += 10, tid);
			if (kind == OFFCPU_OPEN && i % 4) {
				add(&f, OFFCPU_IN, now + 10, tid);
				out(&f, now + 20, tid, 1, false);
				add(&f, OFFCPU_IN, now + 30, tid);
			}
			add(&f, OFFCPU_END, now += 50, tid);
		}
		assert_int_equal(offcpu_round(f.o), 0);
		most = offcpu_threads(f.o) > most ? offcpu_threads(f.o) : most;
	}
	end(&f, now + 10);
	assert_int_equal(lives, n * 50);
	assert_int_equal(offcpu_threads(f.o), 0);
	assert_in_range(most, 1000, 6000);
	offcpu_free(f.o);
}

static int take_last_totals(void *ctx, pid_t tid, const struct offcpu_totals *totals)
{
	(void)tid;
	*(struct offcpu_totals *)ctx = *totals;
	return 0;
}

/* Switches of one second without a round. */
static void overflow_of_the_queue_is_lost_and_unknown(void **state)
{
	const uint64_t n = OFFCPU_QUEUE_MAX + 400000, apart = 1000;
	struct offcpu_listener listener = {.thread = take_last_totals};
	struct offcpu_totals totals = {0};
	struct offcpu *o;

	(void)state;
	listener.ctx = &totals;
	assert_int_equal(offcpu_new(0, 0, &listener, &o), 0);
	assert_int_equal(
		offcpu_add(o, &(struct offcpu_event){.time_ns = 1, .tid = 7, .kind = OFFCPU_BEGIN}),
		0);
	for (uint64_t i = 1; i <= n; i++)
		assert_int_equal(
			offcpu_add(o, &(struct offcpu_event){.time_ns = i * apart,
							     .tid = 7,
							     .kind = i % 2 ? OFFCPU_OUT : OFFCPU_IN,
							     .stack = 1}),
			0);
	/* Every ended thread is marked as ended, however many there are. */
	assert_int_equal(offcpu_add(o, &(struct offcpu_event){.time_ns = (n + 1000) * apart,
							      .tid = 7,
							      .kind = OFFCPU_END}),
			 0);
	assert_int_equal(offcpu_finish(o, 2 * n * apart), 0);
	assert_in_range(offcpu_counts(o)->overflow, 400000, 400002);
	assert_int_equal(totals.end_ns, (n + 1000) * apart);
	assert_in_range(totals.unknown_ns, 400000 * apart - 10 * apart,
			401000 * apart + 10 * apart);
	assert_int_equal(totals.running_ns + totals.blocked_ns + totals.unknown_ns,
			 totals.end_ns - 1);
	offcpu_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_blocked_until_it_is_woken_and_then_runnable),
		cmocka_unit_test(waits_are_cut_to_the_recording),
		cmocka_unit_test(threads_without_events_are_known_by_their_polls),
		cmocka_unit_test(earlier_waits_have_the_stack_that_was_read),
		cmocka_unit_test(short_waits_are_accounted_for_and_no_intervals),
		cmocka_unit_test(threads_are_recorded_from_begin_to_end),
		cmocka_unit_test(events_are_processed_in_order_of_time),
		cmocka_unit_test(a_waker_may_be_early),
		cmocka_unit_test(missing_images_are_counted_and_unknown),
		cmocka_unit_test(losses_visit_only_threads_with_events),
		cmocka_unit_test(a_thread_without_running_time_waits_on_despite_losses),
		cmocka_unit_test(running_threads_are_not_blocked),
		cmocka_unit_test(waits_that_begin_during_losses_are_doubtful),
		cmocka_unit_test(a_woken_thread_counts_as_having_run),
		cmocka_unit_test(errors_of_the_listener_are_returned),
		cmocka_unit_test(places_of_threads_are_used_again),
		cmocka_unit_test(a_storm_of_threads_takes_little_memory_while_throttled),
		cmocka_unit_test(overflow_of_the_queue_is_lost_and_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
