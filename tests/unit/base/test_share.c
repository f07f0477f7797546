#include "base/share.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LIMIT (64 * SHARE_SMALL)

/* Takes as much as possible in steps of a quarter of SHARE_SMALL. */
static void take_all(struct share *s, uint64_t *counted)
{
	while (!share_count(s, counted, *counted + SHARE_SMALL / 4))
		;
}

static void each_taker_leaves_as_much_to_the_others(void **state)
{
	struct share_total total = {.limit = LIMIT};
	struct share a = {.of = &total}, b = {.of = &total};
	uint64_t a_first = 0, a_second = 0, b_first = 0;

	(void)state;
	assert_int_equal(share_count(&a, &a_first, LIMIT / 4), 0);
	take_all(&a, &a_second);
	assert_int_equal(a.taken, LIMIT / 2);
	take_all(&b, &b_first);
	assert_int_equal(b.taken, LIMIT / 4);
	/* A refusal changes nothing, and what is given back can be taken. */
	assert_int_equal(share_count(&b, &b_first, LIMIT), -E2BIG);
	assert_int_equal(b_first, LIMIT / 4);
	share_release(&a, &a_second);
	assert_int_equal(a.taken, LIMIT / 4);
	take_all(&b, &b_first);
	assert_int_equal(b.taken, LIMIT / 8 * 3);
	share_release(&a, &a_first);
	share_release(&b, &b_first);
	assert_int_equal(total.taken, 0);
}

static void greedy_takers_leave_a_reserve_for_small_ones(void **state)
{
	enum { GREEDY = 40, SMALL = 64 };
	struct share_total total = {.limit = LIMIT};
	struct share greedy[GREEDY] = {{0}}, small[SMALL] = {{0}};
	uint64_t counted[GREEDY] = {0};
	int served = 0;

	(void)state;
	for (int i = 0; i < GREEDY; i++) {
		greedy[i].of = &total;
		take_all(&greedy[i], &counted[i]);
		assert_true(greedy[i].taken >= (i < 20 ? SHARE_SMALL : 0));
	}
	for (int i = 0; i < SMALL; i++) {
		uint64_t one = 0;

		small[i].of = &total;
		served += !share_count(&small[i], &one, SHARE_SMALL / 4);
	}
	assert_int_equal(served, SMALL);
	assert_true(total.taken <= 2 * LIMIT);
}

static void without_a_total_there_is_no_limit(void **state)
{
	struct share s = {0};
	uint64_t counted = 0;

	(void)state;
	assert_int_equal(share_count(NULL, &counted, UINT64_MAX), 0);
	assert_int_equal(counted, UINT64_MAX);
	share_release(&s, &counted);
	assert_int_equal(counted, 0);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(each_taker_leaves_as_much_to_the_others),
		cmocka_unit_test(greedy_takers_leave_a_reserve_for_small_ones),
		cmocka_unit_test(without_a_total_there_is_no_limit),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
