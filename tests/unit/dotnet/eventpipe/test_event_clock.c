#include "dotnet/eventpipe/event_clock.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* 2026-11-29 12:30:05.250 at 1,000 ticks of 1 ms. */
static const struct nettrace_trace head = {
	.sync_ticks = 1000, .ticks_per_second = 1000, .utc = {2026, 11, 0, 29, 12, 30, 5, 250}};
#define HEAD_UTC_NS (1795955405 * NS_PER_S + 250000000)

static void times_follow_the_head_of_the_trace(void **state)
{
	struct event_clock c = event_clock_of(&head);
	uint64_t ns = 0;

	(void)state;
	assert_true(event_clock_utc(&c, NS_PER_S, &ns));
	assert_int_equal(ns, HEAD_UTC_NS);
	assert_true(event_clock_utc(&c, NS_PER_S + 7, &ns));
	assert_int_equal(ns, HEAD_UTC_NS + 7);
	/* An event from before the head was written. */
	assert_true(event_clock_utc(&c, NS_PER_S - 7, &ns));
	assert_int_equal(ns, HEAD_UTC_NS - 7);
}

static void absurd_times_are_unknown(void **state)
{
	struct nettrace_trace wrong = head;
	struct event_clock c = event_clock_of(&head), none = {0};
	uint64_t ns = 42;

	(void)state;
	assert_false(event_clock_utc(&none, 5, &ns));
	assert_false(event_clock_utc(&c, UINT64_MAX / 2, &ns));
	wrong.utc[0] = 1900;
	c = event_clock_of(&wrong);
	assert_false(event_clock_utc(&c, NS_PER_S, &ns));
	assert_int_equal(ns, 42);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_follow_the_head_of_the_trace),
		cmocka_unit_test(absurd_times_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
