/* Runnable time of finished waits equals the scheduler's count, with and without wakings. */
#include "tests/unit/offcpu_sim.h"

#define GOT_MAX 16

struct got {
	struct offcpu *o;
	struct offcpu_interval v[GOT_MAX];
	size_t n;
	struct offcpu_totals totals;
};

static int note_interval(void *ctx, const struct offcpu_interval *i)
{
	struct got *got = ctx;

	if (i->tid != 7)
		return 0;
	assert_true(got->n < GOT_MAX);
	got->v[got->n++] = *i;
	return 0;
}

static int note_thread(void *ctx, pid_t tid, const struct offcpu_totals *t)
{
	if (tid == 7)
		((struct got *)ctx)->totals = *t;
	assert_int_equal(t->running_ns + t->blocked_ns + t->runnable_ns + t->unknown_ns,
			 t->end_ns - t->begin_ns);
	return 0;
}

static void add_of(struct got *got, pid_t tid, enum offcpu_kind kind, uint64_t time_ns,
		   uint8_t flags)
{
	assert_int_equal(offcpu_add(got->o, &(struct offcpu_event){.time_ns = time_ns,
								   .tid = tid,
								   .kind = (uint8_t)kind,
								   .flags = flags,
								   .by = 9,
								   .stack = 5}),
			 0);
}

static void add(struct got *got, enum offcpu_kind kind, uint64_t time_ns, uint8_t flags)
{
	add_of(got, 7, kind, time_ns, flags);
}

static void count(struct got *got, uint64_t time_ns, uint64_t wait_ns, uint64_t count)
{
	assert_int_equal(
		offcpu_add_poll(got->o, 7, time_ns, &(struct schedstat){time_ns, wait_ns, count}),
		0);
}

/* Thread 7 runs at 2000; wait_ns of its count is 600 then. */
static void begin(struct got *got)
{
	const struct offcpu_listener listener = {
		.ctx = got, .interval = note_interval, .thread = note_thread};

	*got = (struct got){0};
	assert_int_equal(offcpu_new(1000, 0, &listener, &got->o), 0);
	add(got, OFFCPU_BEGIN, 1000, 0);
	count(got, 1000, 500, 3);
	add(got, OFFCPU_IN, 2000, 0);
	count(got, 2000, 600, 4);
}

/* A wait; woken_ns 0: not recorded. */
static void wait(struct got *got, uint64_t out_ns, uint64_t woken_ns, uint64_t in_ns, uint8_t flags)
{
	add(got, OFFCPU_OUT, out_ns, flags);
	if (woken_ns)
		add(got, OFFCPU_WAKING, woken_ns, 0);
	add(got, OFFCPU_IN, in_ns, 0);
}

static void finish(struct got *got, uint64_t end_ns)
{
	assert_int_equal(offcpu_finish(got->o, end_ns), 0);
	offcpu_free(got->o);
}

static void assert_runnable(const struct got *got, size_t first, const uint64_t *ns, size_t n)
{
	assert_int_equal(got->n, first + n);
	for (size_t i = 0; i < n; i++) {
		const struct offcpu_interval *v = &got->v[first + i];

		assert_int_equal(v->runnable_ns, ns[i]);
		assert_int_equal(v->blocked_ns + v->runnable_ns, v->in_ns - v->out_ns);
	}
}

static void without_wakings_each_wait_has_the_same_part(void **state)
{
	const uint64_t runnable[] = {100, 100, 851, 300, 850};
	struct got got;

	(void)state;
	begin(&got);
	wait(&got, 3000, 0, 3100, 0);
	wait(&got, 4000, 0, 5000, 0);
	wait(&got, 6000, 0, 6300, OFFCPU_PREEMPTED);
	wait(&got, 7000, 0, 12000, 0);
	count(&got, 13000, 600 + 2101, 8);
	finish(&got, 14000);
	/* The wait of the beginning: its count is known at the second poll. */
	assert_runnable(&got, 0, runnable, 5);
	assert_int_equal(got.totals.runnable_ns, 100 + 2101);
	assert_int_equal(got.totals.unsettled, 0);
}

static void with_wakings_they_change_least(void **state)
{
	const uint64_t runnable[] = {100, 30, 400, 80};
	struct got got;

	(void)state;
	begin(&got);
	wait(&got, 3000, 3950, 4000, 0);
	wait(&got, 5000, 0, 5400, OFFCPU_PREEMPTED);
	wait(&got, 6000, 6900, 7000, 0);
	count(&got, 8000, 600 + 510, 7);
	/* Too much was given back, and there is nothing to take. */
	count(&got, 9000, 600 + 510, 7);
	finish(&got, 9500);
	assert_runnable(&got, 0, runnable, 4);
	assert_int_equal(got.totals.runnable_ns, 100 + 510);
}

static void one_unrecorded_waking_takes_the_rest(void **state)
{
	const uint64_t runnable[] = {100, 50, 240};
	struct got got;

	(void)state;
	begin(&got);
	wait(&got, 3000, 3950, 4000, 0);
	wait(&got, 5000, 0, 6000, 0);
	count(&got, 8000, 600 + 290, 6);
	finish(&got, 9000);
	assert_runnable(&got, 0, runnable, 3);
}

/* The thread gets a CPU between the time of a poll and its read; or a loss hides that. */
static void counts_of_unseen_waits_are_not_given_to_others(void **state)
{
	struct got got;

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		begin(&got);
		wait(&got, 3000, 0, 5000, 0);
		add(&got, OFFCPU_OUT, 6000, 0);
		if (lost)
			assert_int_equal(
				offcpu_add(got.o, &(struct offcpu_event){.time_ns = 6500,
									 .until_ns = 6600,
									 .kind = OFFCPU_LOST}),
				0);
		count(&got, 7000, 600 + 800, 6);
		add(&got, OFFCPU_IN, 7001, 0);
		count(&got, 8000, 600 + 800, 6);
		finish(&got, 9000);
		assert_int_equal(got.v[1].runnable_ns, 400);
		assert_int_equal(got.totals.runnable_ns, lost ? 100 + 400 : 100 + 800);
		assert_int_equal(got.totals.unknown_ns > 0, lost);
	}
}

static void the_end_of_a_thread_hands_out_its_waits(void **state)
{
	const uint64_t runnable[] = {100, 0};
	struct got got;

	(void)state;
	begin(&got);
	wait(&got, 3000, 0, 5000, 0);
	add(&got, OFFCPU_END, 6000, 0);
	finish(&got, 9000);
	assert_runnable(&got, 0, runnable, 2);
	assert_int_equal(got.totals.unsettled, 1);
}

/* Without polls nothing is held. With few, memory is bounded, and later waits correct the sum. */
static void held_waits_are_bounded(void **state)
{
	static struct sim sim;
	uint64_t now = BEGIN_NS;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	sim.wakings = false;
	for (int i = 0; i < 300; i++)
		advance_all(&sim, now += 10 * MS);
	assert_true(sim.switches > 2 * OFFCPU_HELD_MAX);
	assert_true(offcpu_counts(sim.o)->overflow > 0);
	for (int i = 0; i < 600; i++) {
		poll_all(&sim, now);
		advance_all(&sim, now += 10 * MS);
	}
	sim_end(&sim, now);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sim.totals[i].running_ns, sim.ran[i]);
		assert_true(llabs((long long)(sim.totals[i].runnable_ns - sum(sim.runnable[i]))) <
			    (long long)MS);
	}
	offcpu_free(sim.o);
}

/* Another thread holds all waits when the second one of thread 7 ends. */
static void a_wait_without_room_counts_once(void **state)
{
	static const struct schedstat none = {0};
	static const uint64_t runnable[] = {100, 300000, 0, 50000};
	uint64_t now = 3000;
	struct got got;

	(void)state;
	begin(&got);
	add_of(&got, 8, OFFCPU_BEGIN, 2000, 0);
	assert_int_equal(offcpu_add_poll(got.o, 8, 2000, &none), 0);
	for (size_t i = 0; i < OFFCPU_HELD_MAX; i++, now += 10) {
		add_of(&got, 8, OFFCPU_IN, now, 0);
		add_of(&got, 8, OFFCPU_OUT, now + 5, 0);
		if (i % 1000 == 0)
			assert_int_equal(offcpu_round(got.o), 0);
	}
	wait(&got, now, 0, now + 300000, OFFCPU_PREEMPTED);
	count(&got, now + 400000, 600 + 300000, 5);
	assert_int_equal(offcpu_add_poll(got.o, 8, now + 400000, &none), 0);
	wait(&got, now + 1000000, 0, now + 1500000, 0);
	count(&got, now + 1600000, 600 + 300000, 6);
	wait(&got, now + 2000000, 0, now + 2500000, 0);
	count(&got, now + 2600000, 600 + 350000, 7);
	for (int i = 0; i < 2; i++)
		assert_int_equal(offcpu_round(got.o), 0);
	assert_true(offcpu_counts(got.o)->overflow > 0);
	finish(&got, now + 3000000);
	assert_runnable(&got, 0, runnable, 4);
	assert_int_equal(got.totals.runnable_ns, 100 + 350000);
	assert_int_equal(got.totals.unsettled, 0);
}

static void sums_are_exact_without_wakings(void **state)
{
	struct sim sim;

	(void)state;
	for (int wakings = 0; wakings < 2; wakings++) {
		uint64_t now = BEGIN_NS;

		sim_begin(&sim, 2, ping_pong);
		sim.wakings = wakings;
		for (int i = 0; i < 100; i++) {
			advance_only(&sim, now += 10 * MS);
			poll_all(&sim, now);
			advance_all(&sim, now);
		}
		sim_end(&sim, now);
		for (size_t i = 0; i < 2; i++) {
			assert_shares(&sim, i, 0.1);
			assert_int_equal(sim.totals[i].unsettled, 0);
		}
		offcpu_free(sim.o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_wakings_each_wait_has_the_same_part),
		cmocka_unit_test(with_wakings_they_change_least),
		cmocka_unit_test(one_unrecorded_waking_takes_the_rest),
		cmocka_unit_test(counts_of_unseen_waits_are_not_given_to_others),
		cmocka_unit_test(the_end_of_a_thread_hands_out_its_waits),
		cmocka_unit_test(held_waits_are_bounded),
		cmocka_unit_test(a_wait_without_room_counts_once),
		cmocka_unit_test(sums_are_exact_without_wakings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
