/* States of threads by their waits. */
#include "profcpu/compare/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct timeline *t;

static void add_wait(int32_t tid, uint64_t begin, uint64_t end, uint64_t runnable)
{
	const struct timeline_wait wait = {
		.begin_ns = begin, .end_ns = end, .runnable_ns = runnable};

	assert_int_equal(timeline_add_wait(t, tid, &wait), 0);
}

/* Thread 7 runs from 0, waits 100 to 200 (woken at 170) and 300 to 400 (preempted); is unknown
 * from 500 to 600; ends at 1000. */
static void begin(void)
{
	assert_int_equal(timeline_new(&t), 0);
	add_wait(7, 300, 400, 100);
	add_wait(7, 100, 200, 30);
	assert_int_equal(timeline_add_unknown(t, 7, 500, 600), 0);
	assert_int_equal(timeline_add_life(t, 7, 10, 1000), 0);
	timeline_finish(t);
}

static void the_state_is_that_just_before_a_time(void **state)
{
	static const struct {
		uint64_t ns;
		enum timeline_state state;
	} cases[] = {{10, TIMELINE_UNKNOWN},   {11, TIMELINE_RUNNING},  {100, TIMELINE_RUNNING},
		     {101, TIMELINE_BLOCKED},  {170, TIMELINE_BLOCKED}, {171, TIMELINE_RUNNABLE},
		     {200, TIMELINE_RUNNABLE}, {201, TIMELINE_RUNNING}, {301, TIMELINE_RUNNABLE},
		     {400, TIMELINE_RUNNABLE}, {401, TIMELINE_RUNNING}, {500, TIMELINE_RUNNING},
		     {501, TIMELINE_UNKNOWN},  {600, TIMELINE_UNKNOWN}, {601, TIMELINE_RUNNING},
		     {1000, TIMELINE_RUNNING}, {1001, TIMELINE_UNKNOWN}};

	(void)state;
	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (timeline_before(t, 7, cases[i].ns) != cases[i].state)
			fail_msg("before %llu: %d", (unsigned long long)cases[i].ns,
				 timeline_before(t, 7, cases[i].ns));
	assert_int_equal(timeline_before(t, 8, 100), TIMELINE_UNKNOWN);
	timeline_free(t);
}

static void times_add_up_within_a_window(void **state)
{
	uint64_t sums[TIMELINE_STATES] = {0}, part[TIMELINE_STATES] = {0};

	(void)state;
	begin();
	timeline_sum(t, 7, 0, 2000, sums);
	assert_int_equal(sums[TIMELINE_BLOCKED], 70);
	assert_int_equal(sums[TIMELINE_RUNNABLE], 130);
	assert_int_equal(sums[TIMELINE_UNKNOWN], 100);
	assert_int_equal(sums[TIMELINE_RUNNING], 990 - 300);
	timeline_sum(t, 7, 150, 350, part);
	assert_int_equal(part[TIMELINE_BLOCKED], 20);
	assert_int_equal(part[TIMELINE_RUNNABLE], 30 + 50);
	assert_int_equal(part[TIMELINE_RUNNING], 100);
	timeline_sum(t, 9, 0, 2000, part);
	timeline_sum(t, 7, 350, 350, part);
	assert_int_equal(part[TIMELINE_RUNNING], 100);
	timeline_free(t);
}

static void the_last_wait_before_a_time_is_found(void **state)
{
	struct timeline_wait wait;

	(void)state;
	begin();
	assert_false(timeline_last_wait(t, 7, 199, &wait));
	assert_true(timeline_last_wait(t, 7, 200, &wait));
	assert_true(wait.begin_ns == 100 && wait.end_ns == 200 && wait.runnable_ns == 30);
	assert_true(timeline_last_wait(t, 7, 399, &wait));
	assert_int_equal(wait.end_ns, 200);
	assert_true(timeline_last_wait(t, 7, 450, &wait));
	assert_int_equal(wait.end_ns, 400);
	assert_false(timeline_last_wait(t, 7, 700, &wait)); /* then it is not known */
	assert_false(timeline_last_wait(t, 8, 450, &wait));
	timeline_free(t);
}

#define STOPS(...)                                   \
	(const struct timeline_span[]){__VA_ARGS__}, \
		sizeof((struct timeline_span[]){__VA_ARGS__}) / sizeof(struct timeline_span)

static void a_stop_blocks_a_thread_until_it_is_woken(void **state)
{
	(void)state;
	begin();
	assert_int_equal(timeline_stopped(t, 7, STOPS({95, 160}), 15), 70);
	assert_int_equal(timeline_stopped(t, 7, STOPS({95, 160}), 5), 0); /* woken too late */
	assert_int_equal(timeline_stopped(t, 7, STOPS({101, 160}), 15), 0);
	assert_int_equal(timeline_stopped(t, 7, STOPS({100, 160}), 15), 70);
	assert_int_equal(timeline_stopped(t, 7, STOPS({290, 310}), 200), 0); /* preempted */
	assert_int_equal(timeline_stopped(t, 7, STOPS({490, 510}), 200), 0); /* unknown */
	assert_int_equal(timeline_stopped(t, 7, STOPS({1, 9}, {90, 0}, {99, 165}, {150, 160}), 9),
			 70);
	assert_int_equal(timeline_stopped(t, 7, NULL, 0, 200), 0);
	timeline_free(t);
}

/* A forged recording. */
static void waits_that_overlap_are_cut(void **state)
{
	uint64_t sums[TIMELINE_STATES] = {0};

	(void)state;
	assert_int_equal(timeline_new(&t), 0);
	add_wait(7, 100, 200, 1000);
	add_wait(7, 150, 250, 0);
	add_wait(7, 160, 180, 0);
	add_wait(7, 300, 300, 0);
	add_wait(7, 500, 400, 0);
	assert_int_equal(timeline_add_life(t, 7, 0, 1000), 0);
	assert_int_equal(timeline_add_life(t, 7, 1000, 500), 0);
	timeline_finish(t);
	timeline_sum(t, 7, 0, 1000, sums);
	assert_int_equal(sums[TIMELINE_RUNNABLE], 100);
	assert_int_equal(sums[TIMELINE_BLOCKED], 50);
	assert_int_equal(sums[TIMELINE_RUNNING], 850);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_state_is_that_just_before_a_time),
		cmocka_unit_test(times_add_up_within_a_window),
		cmocka_unit_test(the_last_wait_before_a_time_is_found),
		cmocka_unit_test(a_stop_blocks_a_thread_until_it_is_woken),
		cmocka_unit_test(waits_that_overlap_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
