/* The controller against targets with a known rate of switches. */
#include "sampler/offcpu/throttle.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define RECORD_NS 5000 /* CPU time of the target, */
#define WORK_NS 8000   /* and of the recorder */
#define BASE_WORK 0.002

struct run {
	double seconds;
	double cost; /* fraction of the time used, worst second last */
	double worst;
	double open; /* fraction of the time with events on */
	uint64_t windows;
	double longest_window_s, longest_closed_s;
};

typedef double (*rate_fn)(double at_s);

/* Number of records in [from, to) with events on; the target runs on `width` CPUs. */
static double records_of(rate_fn rate, double from, double to)
{
	double sum = 0, step = (to - from) / 8;

	for (int i = 0; i < 8; i++)
		sum += rate(from + step * (i + 0.5)) * step;
	return sum;
}

static struct run simulate(rate_fn rate, double seconds, double limit, double width, uint64_t room)
{
	const struct throttle_options options = {.limit = limit,
						 .record_ns = RECORD_NS,
						 .room_records = room,
						 .rate = rate(0),
						 .seed = 42};
	struct throttle_plan plan;
	struct run run = {.seconds = seconds};
	double now = 0, per_second[64] = {0}, open_s = 0;
	struct throttle s;

	plan = throttle_begin(&s, &options);
	while (now < seconds) {
		double closed = plan.whole ? 0 : (double)plan.closed_ns / 1e9,
		       open = (double)plan.open_ns / 1e9;

		/* The rings are read when they are half full. */
		if (plan.whole)
			open = 0.01;
		double n = records_of(rate, now + closed, now + closed + open);

		for (; !plan.whole && throttle_enough(&s, (uint64_t)(n / width));
		     n = records_of(rate, now + closed, now + closed + open))
			open /= 2;
		double off = records_of(rate, now, now + closed) * THROTTLE_OFF_NS / 1e9 / width /
			     (1 - rate(now) * RECORD_NS / 1e9 / width);
		double cost =
			n * (RECORD_NS / width + WORK_NS) / 1e9 + off + BASE_WORK * (closed + open);
		struct throttle_report r = {.elapsed_ns = (uint64_t)((closed + open) * 1e9),
					    .open_ns = (uint64_t)(open * 1e9),
					    .records = (uint64_t)n,
					    .records_cpu = (uint64_t)(n / width),
					    .work_ns = (uint64_t)(n * WORK_NS),
					    .other_work_ns =
						    (uint64_t)(BASE_WORK * (closed + open) * 1e9),
					    .target_ns = (uint64_t)((closed + open) * width * 1e9)};

		now += closed + open;
		open_s += open;
		run.cost += cost;
		per_second[(int)now < 63 ? (int)now : 63] += cost;
		run.windows += !plan.whole;
		if (!plan.whole && open > run.longest_window_s)
			run.longest_window_s = open;
		if (closed > run.longest_closed_s)
			run.longest_closed_s = closed;
		plan = throttle_next(&s, &r);
	}
	run.cost /= now;
	run.open = open_s / now;
	for (int i = 1; i < (int)seconds; i++) /* the first reading decides nothing */
		run.worst = fmax(run.worst, per_second[i]);
	return run;
}

static double calm(double at_s)
{
	(void)at_s;
	return 500;
}

static double storm(double at_s)
{
	(void)at_s;
	return 60000;
}

static double ramp(double at_s)
{
	return 100 + at_s * 5000;
}

/* A tenth of a second in each second. */
static double bursts(double at_s)
{
	return at_s - floor(at_s) < 0.1 ? 60000 : 300;
}

static double passing_storm(double at_s)
{
	return at_s > 5 && at_s < 10 ? 60000 : 300;
}

static void affordable_records_are_not_throttled(void **state)
{
	struct run run = simulate(calm, 20, 0.05, 1, 200);

	(void)state;
	assert_int_equal(run.windows, 0);
	assert_true(run.open > 0.999);
}

static void a_steady_storm_keeps_within_the_limit_and_uses_it(void **state)
{
	(void)state;
	for (int percent = 1; percent <= 11; percent += 2) {
		struct run run = simulate(storm, 20, percent / 100.0, 1, 200);

		assert_true(run.cost < percent / 100.0);
		assert_true(run.worst < 1.2 * percent / 100.0);
		assert_true(run.cost > 0.7 * percent / 100.0);
		/* Many, so that their sum is close to the whole. */
		assert_true(run.windows >= (uint64_t)(80 * percent));
		assert_true(run.longest_window_s <
			    150 / storm(0)); /* 100 records a CPU, plus random variation */
	}
}

static void a_target_with_many_cpus_is_recorded_more(void **state)
{
	struct run one = simulate(storm, 20, 0.05, 1, 0), eight = simulate(storm, 20, 0.05, 8, 0);

	(void)state;
	assert_true(eight.cost < 0.05);
	assert_true(eight.open > 1.3 * one.open);
}

static void a_ramp_is_followed(void **state)
{
	struct run run = simulate(ramp, 20, 0.05, 1, 200);

	(void)state;
	assert_true(run.cost < 0.05 && run.worst < 0.05);
	assert_true(run.open > 0.02);
}

static void bursts_keep_within_the_limit(void **state)
{
	struct run run = simulate(bursts, 30, 0.05, 1, 200);

	(void)state;
	assert_true(run.cost < 0.05);
	assert_true(run.worst < 0.10); /* a controller cannot foresee the beginning of a burst */
	assert_true(run.open > 0.01);
}

static void throttling_ends_with_the_storm(void **state)
{
	struct run run = simulate(passing_storm, 30, 0.05, 1, 200);

	(void)state;
	assert_true(run.open > 0.75);
	assert_true(run.windows > 20);
}

static void an_exhausted_limit_leaves_events_almost_off(void **state)
{
	struct run run = simulate(storm, 20, BASE_WORK, 1, 200);

	(void)state;
	assert_true(run.open < 0.006);
	assert_true(run.longest_closed_s <= 1.5 * THROTTLE_CYCLE_MAX_NS / 1e9);
}

static void a_window_ends_before_the_ring_is_full(void **state)
{
	struct throttle s;

	(void)state;
	throttle_begin(&s, &(struct throttle_options){.limit = 0.1, .room_records = 100});
	assert_false(throttle_enough(&s, 1000)); /* not throttling now */
	struct throttle_plan plan =
		throttle_next(&s, &(struct throttle_report){.elapsed_ns = 50 * NS_PER_MS,
							    .open_ns = 50 * NS_PER_MS,
							    .records = 5000,
							    .records_cpu = 2500,
							    .work_ns = 25 * NS_PER_MS});

	assert_false(plan.whole);
	assert_int_equal(plan.open_ns, NS_PER_MS); /* 50 of them */
	assert_false(throttle_enough(&s, 70));
	assert_true(throttle_enough(&s, 80));
}

/* Windows cover all phases of the target equally, whatever its period. */
static void windows_do_not_synchronise_with_the_target(void **state)
{
	struct throttle s;
	unsigned hits[10] = {0};
	double now = 0;

	(void)state;
	throttle_begin(&s, &(struct throttle_options){.limit = 0.05, .seed = 7});
	for (int i = 0; i < 20000; i++) {
		struct throttle_plan plan =
			throttle_next(&s, &(struct throttle_report){.elapsed_ns = 100 * NS_PER_MS,
								    .open_ns = 5 * NS_PER_MS,
								    .records = 500,
								    .work_ns = 500 * WORK_NS});

		assert_false(plan.whole);
		now += (double)plan.closed_ns / 1e9;
		hits[(int)(10 * (now * 10 - floor(now * 10)))]++;
		now += (double)plan.open_ns / 1e9;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(hits[i], 1800, 2200);
}

/* A report begins no windows, unless what it reports goes on. */
static void only_recurring_costs_throttle(const struct throttle_report *r)
{
	struct throttle s;

	throttle_begin(&s, &(struct throttle_options){.limit = 0.05});
	assert_true(throttle_next(&s, r).whole);
	for (int i = 0; i < 20; i++)
		(void)throttle_next(&s, r);
	assert_true(s.throttling);
}

/* Rules for a new image take longer to make than rules for a thousand records. */
static void one_time_costs_are_not_costs_of_records(void **state)
{
	(void)state;
	only_recurring_costs_throttle(&(struct throttle_report){.elapsed_ns = 900 * NS_PER_MS,
								.open_ns = 900 * NS_PER_MS,
								.records = 300,
								.records_cpu = 200,
								.work_ns = 120 * NS_PER_MS});
}

/* As measured: maps, images and names are read in the first tenth of a second. */
static void work_at_the_start_does_not_throttle(void **state)
{
	(void)state;
	only_recurring_costs_throttle(
		&(struct throttle_report){.elapsed_ns = 107 * NS_PER_MS,
					  .open_ns = 107 * NS_PER_MS,
					  .records = 130,
					  .records_cpu = 100,
					  .work_ns = 900000,
					  .other_work_ns = 107 * NS_PER_MS * 41 / 1000});
}

/* The cost of throttling itself must not keep throttling active. */
static void the_cost_of_throttling_does_not_prolong_it(void **state)
{
	struct throttle_report r = {.elapsed_ns = 40 * NS_PER_MS,
				    .open_ns = 10 * NS_PER_MS,
				    .records = 10,
				    .records_cpu = 10,
				    .work_ns = 10 * WORK_NS,
				    .throttle_work_ns = 40 * NS_PER_MS * 4 / 100};
	struct throttle s;
	int n = 0;

	(void)state;
	throttle_begin(&s, &(struct throttle_options){.limit = 0.05, .rate = 50000});
	assert_true(s.throttling);
	while (!throttle_next(&s, &r).whole)
		assert_true(++n < 100);
	/* Other work of the same cost leaves room for windows. */
	r.other_work_ns = r.throttle_work_ns;
	r.throttle_work_ns = 0;
	r.records = 1000;
	for (int i = 0; i < 200; i++)
		(void)throttle_next(&s, &r);
	assert_true(s.throttling && s.duty > 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(affordable_records_are_not_throttled),
		cmocka_unit_test(a_steady_storm_keeps_within_the_limit_and_uses_it),
		cmocka_unit_test(a_target_with_many_cpus_is_recorded_more),
		cmocka_unit_test(a_ramp_is_followed),
		cmocka_unit_test(bursts_keep_within_the_limit),
		cmocka_unit_test(throttling_ends_with_the_storm),
		cmocka_unit_test(an_exhausted_limit_leaves_events_almost_off),
		cmocka_unit_test(a_window_ends_before_the_ring_is_full),
		cmocka_unit_test(windows_do_not_synchronise_with_the_target),
		cmocka_unit_test(one_time_costs_are_not_costs_of_records),
		cmocka_unit_test(work_at_the_start_does_not_throttle),
		cmocka_unit_test(the_cost_of_throttling_does_not_prolong_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
