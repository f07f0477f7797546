/* Waits while events are off most of the time: estimated shares are compared with the simulated
 * threads. */
#include "tests/unit/offcpu_sim.h"

static void a_storm_keeps_its_shares(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 10 * NS_PER_S, 1 * MS, 25 * MS);
	for (size_t i = 0; i < 2; i++)
		assert_shares(&sim, i, 1.0);
	assert_int_equal(sim.totals[0].no_stack_ns, 0);
	offcpu_free(sim.o);
}

/* Short waits in a hot loop, longer waits and long waits, each with its own probability. */
static void mixed(struct sim *sim, size_t i)
{
	static const uint64_t means[4] = {50 * US, 3 * MS, 60 * MS, 900 * MS};
	static const double odds[4] = {0.955, 0.04, 0.004, 0.001};
	struct sim_thread *t = &sim->threads[i];
	double x = chance(sim);

	for (t->stack = 0; t->stack < 3 && x > odds[t->stack]; t->stack++)
		x -= odds[t->stack];
	t->out_ns = t->now_ns + around(sim, 40 * US);
	t->woken_ns = t->out_ns + around(sim, means[t->stack]);
}

static void waits_of_all_lengths_keep_their_shares(void **state)
{
	struct sim sim;
	double real[STACKS] = {0}, got[STACKS + 1] = {0}, all = 0;

	(void)state;
	sim_begin(&sim, THREADS, mixed);
	run_windows_polling(&sim, BEGIN_NS, BEGIN_NS + 200 * NS_PER_S, 5 * MS, 100 * MS, 10 * MS);
	for (size_t i = 0; i < THREADS; i++) {
		assert_shares(&sim, i, 15.0); /* one thread shows few of the long waits */
		for (size_t s = 0; s < STACKS; s++) {
			real[s] += (double)(sim.blocked[i][s] + sim.runnable[i][s]);
			got[s] += (double)(sim.got_blocked[i][s] + sim.got_runnable[i][s]);
		}
		all += (double)(sum(sim.blocked[i]) + sum(sim.runnable[i]));
	}
	for (size_t s = 0; s < STACKS; s++)
		if (fabs(real[s] - got[s]) / all > 0.03)
			fail_msg("stack %zu: %.2f %% are %.2f %%", s, 100 * got[s] / all,
				 100 * real[s] / all);
	offcpu_free(sim.o);
}

/* The hardest waits are longer than a window, and not longer than the distance of two polls. */
static void two_lengths(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = t->n++ % 2;
	t->out_ns = t->now_ns + around(sim, 100 * US);
	t->woken_ns = t->out_ns + (t->stack ? 150 * MS : 50 * MS);
}

static void waits_as_long_as_a_cycle_keep_their_shares(void **state)
{
	struct sim sim;
	double got[2] = {0};

	(void)state;
	sim_begin(&sim, THREADS, two_lengths);
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 200 * NS_PER_S, 5 * MS, 100 * MS);
	for (size_t i = 0; i < THREADS; i++)
		for (size_t s = 0; s < 2; s++)
			got[s] += (double)(sim.got_blocked[i][s] + sim.got_runnable[i][s]);
	assert_true(fabs(got[1] / (got[0] + got[1]) - 0.75) < 0.05);
	offcpu_free(sim.o);
}

/* Waits longer than a window, either many between two windows or longer than that distance. */
static void some_milliseconds(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];
	uint64_t ms = i % 2 ? 100 : 1;

	t->stack = t->n++ % 2;
	t->out_ns = t->now_ns + around(sim, 20 * US);
	t->woken_ns = t->out_ns + (t->stack ? 3 * ms : ms) * MS;
}

/* Waits of the same lengths in turn. */
static void in_turn(struct sim *sim, size_t i)
{
	static const uint64_t ms[4][3] = {{7, 40, 0}, {1, 100, 0}, {5, 5, 5}, {2, 15, 60}};
	struct sim_thread *t = &sim->threads[i];

	t->stack = t->n++ % (ms[i][2] ? 3 : 2);
	t->out_ns = t->now_ns + around(sim, 20 * US);
	t->woken_ns = t->out_ns + ms[i][t->stack] * MS + around(sim, 60 * US);
}

struct thinning {
	uint64_t seconds, open_us, closed_us;
	uint64_t reply_ns;
	bool no_rounds; /* rings are read once for each window */
	unsigned polls; /* of all threads, between two windows; then only sampled waits; 0: all */
};

/* Polls like record_windows: soon behind a window, then ever less often. */
static void thin_out_polls(struct sim *sim, const struct thinning *o)
{
	uint64_t now = BEGIN_NS, end_ns = BEGIN_NS + o->seconds * NS_PER_S;

	sim->reply_ns = o->reply_ns;
	while (now < end_ns) {
		uint64_t until =
			now + (uint64_t)((double)(o->closed_us * US) * (0.5 + chance(sim)));

		unsigned polls = 0;

		const uint64_t closed_ns = now;

		for (uint64_t apart = (uint64_t)((double)MS / 4 * exp2(chance(sim))); now < until;
		     apart = now - closed_ns < 16 * MS ? now - closed_ns : 16 * MS) {
			if (!o->polls || polls++ < o->polls)
				set_open(sim, now, false);
			else
				follow_all(sim, now);
			now = until - now < apart ? until : now + apart;
			if (o->no_rounds)
				advance_only(sim, now);
			else
				advance_all(sim, now);
		}
		set_open(sim, now, true);
		advance_all(sim, now += o->open_us * US);
	}
	sim_end(sim, now);
}

static void keep_shares(void (*next)(struct sim *sim, size_t thread), size_t nthreads,
			const struct thinning *options, double points)
{
	struct sim sim;

	sim_begin(&sim, nthreads, next);
	thin_out_polls(&sim, options);
	for (size_t i = 0; i < nthreads; i++)
		assert_shares(&sim, i, points);
	offcpu_free(sim.o);
}

static void rarer_polls_make_no_wait_longer_or_shorter(void **state)
{
	(void)state;
	keep_shares(some_milliseconds, 2, &(struct thinning){200, 800, 39000, 0, false, 0}, 2.0);
}

/* When the reply comes, the wait is over. */
static void late_stacks_belong_to_the_wait_they_were_read_in(void **state)
{
	(void)state;
	keep_shares(some_milliseconds, 2, &(struct thinning){200, 800, 39000, 200 * MS, true, 0},
		    2.0);
}

/* With many threads, polls cost too much. */
static void rare_polls_of_all_threads_make_no_wait_longer_or_shorter(void **state)
{
	(void)state;
	keep_shares(in_turn, 4, &(struct thinning){2000, 800, 39000, .polls = 1}, 2.0);
	keep_shares(in_turn, 4, &(struct thinning){2000, 800, 39000, .polls = 3}, 2.0);
	keep_shares(in_turn, 4, &(struct thinning){2000, 2000, 150000, .polls = 1}, 2.0);
}

/* Windows are short against the waits, or about as long. */
static void waits_in_turn_keep_their_shares(void **state)
{
	(void)state;
	keep_shares(in_turn, 4, &(struct thinning){2000, 800, 39000, 0, false, 0}, 1.5);
	keep_shares(in_turn, 4, &(struct thinning){1000, 4000, 36000, 0, false, 0}, 1.5);
	keep_shares(in_turn, 4, &(struct thinning){500, 25000, 15000, 0, false, 0}, 1.5);
}

static void the_state_of_a_thread_that_never_switches_is_known(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, never);
	advance_all(&sim, BEGIN_NS + 900 * MS);
	run_windows(&sim, BEGIN_NS + 900 * MS, BEGIN_NS + 10 * NS_PER_S, 5 * MS, 100 * MS);
	/* Its begin was seen while everything was recorded. */
	assert_shares(&sim, 0, 0.1);
	assert_int_equal(sim.totals[1].running_ns, sim.totals[1].end_ns - BEGIN_NS);
	offcpu_free(sim.o);
}

static void sums_are_right_without_wakings(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	sim.wakings = false;
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 10 * NS_PER_S, 1 * MS, 25 * MS);
	for (size_t i = 0; i < 2; i++)
		assert_shares(&sim, i, 1.5);
	offcpu_free(sim.o);
}

/* Half of its waits are preemptions. */
static void preempted(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = t->n++ % 2;
	t->preempted = t->stack;
	t->out_ns = t->now_ns + around(sim, 100 * US);
	t->woken_ns = t->out_ns + (t->preempted ? 0 : around(sim, 300 * US));
}

static void runnable_time_is_distinguished_from_blocked_time(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, preempted);
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 20 * NS_PER_S, 5 * MS, 50 * MS);
	for (size_t i = 0; i < 2; i++) {
		double off = (double)(sum(sim.blocked[i]) + sum(sim.runnable[i]));

		assert_shares(&sim, i, 1.5);
		for (size_t s = 0; s < 2; s++)
			assert_true(
				fabs((double)sim.got_runnable[i][s] - (double)sim.runnable[i][s]) /
					off <
				0.015);
	}
	assert_int_equal(sim.got_blocked[0][1], 0);
	offcpu_free(sim.o);
}

/* Includes the controller: 100000 switches a second, 5 percent. */
static void the_controller_keeps_the_limit_and_the_shares(void **state)
{
	struct sim sim;
	struct throttle throttle;
	struct throttle_plan plan = throttle_begin(
		&throttle,
		&(struct throttle_options){.limit = 0.05, .room_records = 240, .rate = 100000});
	uint64_t now = BEGIN_NS, end_ns = BEGIN_NS + 10 * NS_PER_S, seen = 0;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	assert_false(plan.whole);
	while (now < end_ns) {
		uint64_t before;

		assert_false(plan.whole);
		set_open(&sim, now, false);
		advance_all(&sim, now += plan.closed_ns);
		set_open(&sim, now, true);
		before = sim.switches;
		advance_all(&sim, now += plan.open_ns);
		seen += sim.switches - before;
		plan = throttle_next(
			&throttle, &(struct throttle_report){
					   .elapsed_ns = plan.closed_ns + plan.open_ns,
					   .open_ns = plan.open_ns,
					   .records = sim.switches - before,
					   .records_cpu = (sim.switches - before) / 2,
					   .work_ns = (sim.switches - before) * 8000,
					   .other_work_ns = (plan.closed_ns + plan.open_ns) / 500});
	}
	sim_end(&sim, now);
	for (size_t i = 0; i < 2; i++)
		assert_shares(&sim, i, 1.5);
	assert_in_range(seen * (THROTTLE_RECORD_NS + 8000),
			(uint64_t)(0.03 * (double)(now - BEGIN_NS)),
			(uint64_t)(0.048 * (double)(now - BEGIN_NS)));
	offcpu_free(sim.o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_storm_keeps_its_shares),
		cmocka_unit_test(waits_of_all_lengths_keep_their_shares),
		cmocka_unit_test(waits_as_long_as_a_cycle_keep_their_shares),
		cmocka_unit_test(rarer_polls_make_no_wait_longer_or_shorter),
		cmocka_unit_test(late_stacks_belong_to_the_wait_they_were_read_in),
		cmocka_unit_test(rare_polls_of_all_threads_make_no_wait_longer_or_shorter),
		cmocka_unit_test(waits_in_turn_keep_their_shares),
		cmocka_unit_test(the_state_of_a_thread_that_never_switches_is_known),
		cmocka_unit_test(sums_are_right_without_wakings),
		cmocka_unit_test(runnable_time_is_distinguished_from_blocked_time),
		cmocka_unit_test(the_controller_keeps_the_limit_and_the_shares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
