#include "base/fair_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 30)

static uint64_t take_all(struct fair_share *s, int32_t taker)
{
	uint64_t room = fair_share_room(s, taker);

	fair_share_take(s, taker, room);
	assert_int_equal(fair_share_room(s, taker), 0);
	return room;
}

static void one_taker_gets_half_in_any_number_of_steps(void **state)
{
	struct fair_share once = {.limit = LIMIT}, steps = {.limit = LIMIT};
	uint64_t n = 0;

	(void)state;
	assert_int_equal(take_all(&once, 7), LIMIT / 2);
	assert_int_equal(fair_share_room(&once, 0), LIMIT / 8);
	while (fair_share_room(&steps, -1) >= LIMIT / 1024) {
		fair_share_take(&steps, -1, LIMIT / 1024);
		n++;
	}
	assert_in_range(n, 512, 530);
	fair_share_free(&once);
	fair_share_free(&steps);
}

static void greedy_takers_leave_something_to_each_next_one(void **state)
{
	struct fair_share s = {.limit = LIMIT};
	uint64_t last = LIMIT;

	(void)state;
	for (int32_t n = 0; n < 1000; n++) {
		uint64_t room = take_all(&s, n);

		assert_in_range(room, LIMIT / (uint64_t)((n + 2) * (n + 2)), last - 1);
		last = room;
	}
	assert_true(s.taken < LIMIT);
	fair_share_free(&s);
}

static void more_than_the_room_leaves_none(void **state)
{
	struct fair_share s = {.limit = LIMIT};

	(void)state;
	fair_share_take(&s, 1, 2 * LIMIT);
	assert_int_equal(fair_share_room(&s, 1), 0);
	assert_int_equal(fair_share_room(&s, 2), 0);
	fair_share_free(&s);
	s = (struct fair_share){.limit = UINT64_MAX};
	assert_true(fair_share_room(&s, 1) >= UINT64_MAX / 2);
	fair_share_free(&s);
}

static void without_a_limit_all_is_room(void **state)
{
	struct fair_share s = {0};

	(void)state;
	fair_share_take(&s, 1, UINT64_MAX);
	assert_true(fair_share_room(&s, 1) == UINT64_MAX);
	fair_share_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_taker_gets_half_in_any_number_of_steps),
		cmocka_unit_test(greedy_takers_leave_something_to_each_next_one),
		cmocka_unit_test(more_than_the_room_leaves_none),
		cmocka_unit_test(without_a_limit_all_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
