#include "symbols/core/families.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)

/* Takes as much as possible, and returns it. */
static uint64_t take(uint64_t *all, uint64_t most)
{
	uint64_t mine = 0;

	while (mine < most && family_has_room(mine, *all, LIMIT)) {
		mine++;
		(*all)++;
	}
	return mine;
}

static void one_family_gets_half(void **state)
{
	uint64_t all = 0;

	(void)state;
	assert_int_equal(take(&all, LIMIT), LIMIT / 2);
	assert_int_equal(take(&all, LIMIT), LIMIT / 8);
}

static void many_large_families_leave_room_to_small_ones(void **state)
{
	uint64_t all = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		assert_true(take(&all, LIMIT));
	assert_int_equal(take(&all, LIMIT / 484), LIMIT / 484);
}

static void the_limit_holds_for_any_number(void **state)
{
	uint64_t all = 0;

	(void)state;
	while (take(&all, 1))
		;
	assert_in_range(all, LIMIT - LIMIT / 256, LIMIT);
	assert_false(family_has_room(0, LIMIT + 1, LIMIT));
	assert_false(family_has_room(0, 0, 0));
	assert_false(family_has_room(UINT64_MAX, UINT64_MAX, LIMIT));
}

/* A family that nobody refers to is used again, and has taken nothing. */
static void unused_families_are_used_again(void **state)
{
	struct families f = {0};
	uint32_t a, b, c;

	(void)state;
	assert_int_equal(families_new(&f, &a), 0);
	assert_int_equal(families_new(&f, &b), 0);
	assert_int_not_equal(a, b);
	assert_true(a && b);
	families_drop_map(&f, a, 7);
	families_drop_map(&f, a, 7);
	families_drop_map(&f, b, 8);
	assert_int_equal(f.dropped, 3);
	assert_int_equal(f.most_pid, 7);
	families_enter(&f, a);
	families_leave(&f, a);
	assert_int_equal(f.v.v[a].refs, 1);
	families_leave(&f, a);
	assert_int_equal(families_new(&f, &c), 0);
	assert_int_equal(c, a);
	assert_int_equal(f.v.v[c].dropped, 0);
	families_leave(&f, 0);
	families_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_family_gets_half),
		cmocka_unit_test(many_large_families_leave_room_to_small_ones),
		cmocka_unit_test(the_limit_holds_for_any_number),
		cmocka_unit_test(unused_families_are_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
