/* Waits at the seams of windows, losses and polls: estimates are compared with the simulated
 * threads. */
#include "tests/unit/offcpu_sim.h"

/* Its last poll fails, as for a process that is being killed, or because of too many threads. */
static void a_thread_that_is_no_longer_polled_becomes_unknown(void **state)
{
	struct sim sim;
	uint64_t now = BEGIN_NS + NS_PER_S;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	advance_all(&sim, now);
	for (int i = 0; i < 100; i++) {
		set_open(&sim, now, false);
		advance_all(&sim, now += 24 * MS);
		set_open(&sim, now, true);
		advance_all(&sim, now += 1 * MS);
		if (i == 79)
			sim.nthreads = 1;
	}
	sim_end(&sim, now);
	assert_shares(&sim, 0, 1.5);
	/* In the second case the poll at the previous CLOSE was the last one. */
	assert_in_range(sim.totals[1].unknown_ns, 21 * 25 * MS - MS, 21 * 25 * MS + MS);
	assert_true(sim.totals[1].unwatched_ns == sim.totals[1].unknown_ns);
	offcpu_free(sim.o);
}

/* Afterwards everything is exact again. */
static uint64_t second_of_windows(struct sim *sim, uint64_t now)
{
	for (int i = 0; i < 40; i++) {
		set_open(sim, now, false);
		advance_all(sim, now += 24 * MS);
		set_open(sim, now, true);
		advance_all(sim, now += 1 * MS);
	}
	send_event(sim, OFFCPU_WHOLE, now, 0, 0, false);
	return now;
}

/* Complete, windows, complete again: nothing is lost at the seams. late_ns: delay of a thread's
 * poll after the windows. */
static void join_times(uint64_t late_ns)
{
	struct sim sim;
	uint64_t now = BEGIN_NS + 2 * NS_PER_S;

	sim_begin(&sim, 2, ping_pong);
	for (int round = 0; round < 3; round++) {
		for (uint64_t to = now + NS_PER_S; now < to;)
			advance_all(&sim, now += 10 * MS);
		now = second_of_windows(&sim, now);
		for (uint64_t to = now + late_ns; now < to;)
			advance_all(&sim, now += 10 * MS);
		/* The last poll at the end must be enough. */
		if (!late_ns || round < 2)
			poll_all(&sim, now);
	}
	advance_all(&sim, now += NS_PER_S);
	sim_end(&sim, now);
	for (size_t i = 0; i < 2; i++) {
		assert_shares(&sim, i, 1.0);
		assert_in_range(sim.totals[i].estimated_ns, 2 * NS_PER_S, 3 * NS_PER_S);
	}
	assert_int_equal(offcpu_counts(sim.o)->late, 0);
	offcpu_free(sim.o);
}

static void times_with_and_without_windows_join(void **state)
{
	(void)state;
	join_times(0);
}

static void polls_may_come_late_after_windows(void **state)
{
	(void)state;
	join_times(300 * MS);
}

/* Sleeps through the windows and runs from shortly before it is polled. Then sleeps and runs in
 * turn. */
static void sleeps_through(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = 0;
	t->out_ns = t->now_ns + (t->n ? 30 * MS : MS);
	t->woken_ns = t->n++ ? t->out_ns + 70 * MS : BEGIN_NS + 2290 * MS;
}

static void a_thread_that_runs_at_a_late_poll_did_not_run_before(void **state)
{
	uint64_t now = BEGIN_NS;
	struct sim sim;

	(void)state;
	sim_begin(&sim, 1, sleeps_through);
	sim.tick_ns = 4 * MS;
	for (int i = 0; i < 100; i++)
		advance_all(&sim, now += 10 * MS);
	for (int part = 0; part < 2; part++) {
		now = second_of_windows(&sim, now);
		for (int i = 0; i < 30; i++)
			advance_all(&sim, now += 10 * MS);
		poll_all(&sim, now);
	}
	advance_all(&sim, now += NS_PER_S);
	sim_end(&sim, now);
	assert_in_range(sim.totals[0].running_ns, sim.ran[0] - 30 * MS, sim.ran[0] + 30 * MS);
	assert_in_range(sim.totals[0].runnable_ns, 0, 30 * MS);
	offcpu_free(sim.o);
}

/* Sleeps through windows and through a loss soon behind them. */
static void a_sleepers_state_is_known_after_windows_despite_losses(void **state)
{
	struct offcpu_event lost = {.kind = OFFCPU_LOST};
	struct sim sim;
	uint64_t now = BEGIN_NS + NS_PER_S;

	(void)state;
	sim_begin(&sim, 2, never);
	for (int i = 0; i < 10; i++) {
		advance_all(&sim, now += 24 * MS);
		set_open(&sim, now, false);
		advance_all(&sim, now += 24 * MS);
		set_open(&sim, now, true);
	}
	advance_all(&sim, now += MS);
	send_event(&sim, OFFCPU_WHOLE, now, 0, 0, false);
	poll_all(&sim, now);
	advance_all(&sim, now += 10 * MS);
	lost.time_ns = now;
	lost.until_ns = now += MS;
	assert_int_equal(offcpu_add(sim.o, &lost), 0);
	for (int i = 0; i < 100; i++) {
		advance_all(&sim, now += 50 * MS);
		poll_all(&sim, now);
	}
	sim_end(&sim, now += MS);
	assert_int_equal(sim.totals[0].unknown_ns, 0);
	offcpu_free(sim.o);
}

static void send_at_us(struct sim *sim, enum offcpu_kind kind, uint64_t us, uint32_t stack)
{
	send_event(sim, kind, BEGIN_NS + us * US, 0, stack, false);
}

static void poll_us(struct sim *sim, uint64_t us, uint64_t run_us, uint64_t count)
{
	assert_int_equal(offcpu_add_poll(sim->o, 0, BEGIN_NS + us * US,
					 &(struct schedstat){run_us * US, 0, count}),
			 0);
}

static void open_at_2000_us(struct sim *sim)
{
	sim_begin(sim, 1, never);
	send_at_us(sim, OFFCPU_CLOSE, 1000, 0);
	poll_us(sim, 1000, 1000, 0);
	send_at_us(sim, OFFCPU_OPEN, 2000, 0);
}

/* A wait of 200 us in a window, and one of 350 us before the next. In between the thread runs up to
 * a loss. */
static void time_on_cpu_before_a_loss_is_no_wait(void **state)
{
	struct sim sim;

	(void)state;
	open_at_2000_us(&sim);
	send_at_us(&sim, OFFCPU_OUT, 2200, 2);
	send_at_us(&sim, OFFCPU_IN, 2400, 0);
	send_at_us(&sim, OFFCPU_OUT, 2900, 1);
	send_at_us(&sim, OFFCPU_CLOSE, 3000, 0);
	poll_us(&sim, 3000, 2700, 1);
	/* In at 3500 and out at 3900, both unseen. */
	send_at_us(&sim, OFFCPU_OPEN, 4000, 0);
	send_at_us(&sim, OFFCPU_IN, 4100, 0);
	send_at_us(&sim, OFFCPU_LOST, 4900, 0);
	send_at_us(&sim, OFFCPU_CLOSE, 5000, 0);
	poll_us(&sim, 5000, 4000, 3);
	assert_int_equal(offcpu_finish(sim.o, BEGIN_NS + 5000 * US), 0);
	assert_int_equal(sim.totals[0].running_ns, 4000 * US);
	assert_in_range(sim.got_blocked[0][1] + sim.got_runnable[0][1], 636 * US,
			637 * US); /* 350 of 550, of 1000 us */
	offcpu_free(sim.o);
}

/* The poll at the end of the window is late: the wait is over, and the next one has begun. */
static void a_late_poll_gives_no_wait_the_time_of_the_next(void **state)
{
	struct sim sim;

	(void)state;
	open_at_2000_us(&sim);
	send_at_us(&sim, OFFCPU_OUT, 2500, 2);
	send_at_us(&sim, OFFCPU_CLOSE, 3000, 0);
	poll_us(&sim, 3000, 2500, 1);
	send_at_us(&sim, OFFCPU_IN, 3200, 0);
	for (uint64_t us = 8000; us <= 18000; us += 5000) {
		send_at_us(&sim, OFFCPU_CLOSE, us, 0);
		poll_us(&sim, us, 2600, 1);
	}
	assert_int_equal(offcpu_round(sim.o), 0);
	assert_int_equal(offcpu_round(sim.o), 0);
	assert_int_equal(offcpu_add_stack(sim.o, 0, 1, 3), 0);
	assert_int_equal(offcpu_finish(sim.o, BEGIN_NS + 18000 * US), 0);
	assert_int_equal(sim.got_blocked[0][3], 10000 * US);
	assert_int_equal(sim.totals[0].no_stack_ns, 0);
	offcpu_free(sim.o);
}

/* Falls asleep and wakes up while events are off, and is read in between. Time at both ends of that
 * sleep belongs to it. */
static void a_wait_that_spans_windows_keeps_its_stack(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 1, never);
	send_at_us(&sim, OFFCPU_CLOSE, 1000, 0);
	poll_us(&sim, 1000, 1000, 0);
	for (uint64_t us = 2000; us <= 11000; us += 3000) {
		send_at_us(&sim, OFFCPU_CLOSE, us, 0);
		poll_us(&sim, us, 1500, 1);
	}
	send_at_us(&sim, OFFCPU_CLOSE, 12000, 0);
	poll_us(&sim, 12000, 2000, 2);
	send_at_us(&sim, OFFCPU_CLOSE, 13000, 0);
	assert_int_equal(offcpu_round(sim.o), 0);
	assert_int_equal(offcpu_round(sim.o), 0);
	assert_int_equal(offcpu_add_stack(sim.o, 0, 1, 3), 0);
	poll_us(&sim, 13000, 3000, 2);
	assert_int_equal(offcpu_finish(sim.o, BEGIN_NS + 13000 * US), 0);
	assert_int_equal(sim.totals[0].running_ns, 3000 * US);
	assert_int_equal(sim.totals[0].no_stack_ns, 0);
	assert_int_equal(sim.got_blocked[0][3], 10000 * US);
	offcpu_free(sim.o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_is_no_longer_polled_becomes_unknown),
		cmocka_unit_test(times_with_and_without_windows_join),
		cmocka_unit_test(polls_may_come_late_after_windows),
		cmocka_unit_test(a_thread_that_runs_at_a_late_poll_did_not_run_before),
		cmocka_unit_test(a_sleepers_state_is_known_after_windows_despite_losses),
		cmocka_unit_test(time_on_cpu_before_a_loss_is_no_wait),
		cmocka_unit_test(a_late_poll_gives_no_wait_the_time_of_the_next),
		cmocka_unit_test(a_wait_that_spans_windows_keeps_its_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
