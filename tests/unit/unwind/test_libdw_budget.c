/* Images whose rules end libdw or take too long are refused, and only those. */
#include "unwind/libdw_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define GOOD 1
#define BAD 2
#define FRAMES 10000

static bool charge(struct libdw_budget *b, uint64_t image, uint64_t cpu_ns, uint64_t frames)
{
	bool refused;

	const struct libdw_charge c = {.image = image, .cpu_ns = cpu_ns, .frames = frames};

	assert_int_equal(libdw_budget_charge(b, &c, &refused), 0);
	return refused;
}

/* The most that good rules need: 10,000 frames. */
static void good_images_are_never_refused(void **state)
{
	struct libdw_budget b = {0};

	(void)state;
	for (int i = 0; i < 100000; i++)
		assert_false(charge(&b, GOOD, 5000u * FRAMES, FRAMES));
	assert_false(libdw_budget_refuses(&b, GOOD));
	libdw_budget_free(&b);
}

/* CFI of 26 MiB, which 20 processes use. */
static void large_images_may_take_longer(void **state)
{
	struct libdw_budget b = {0};
	const struct libdw_charge large = {
		.image = GOOD, .bytes = 26 << 20, .cpu_ns = 350 * NS_PER_MS, .frames = 20};
	const struct libdw_charge small = {
		.image = BAD, .bytes = 1 << 10, .cpu_ns = 350 * NS_PER_MS, .frames = 20};
	bool refused = false;

	(void)state;
	for (int i = 0; i < 20 && !refused; i++)
		assert_int_equal(libdw_budget_charge(&b, &large, &refused), 0);
	assert_false(refused);
	for (int i = 0; i < 20 && !refused; i++)
		assert_int_equal(libdw_budget_charge(&b, &small, &refused), 0);
	assert_true(refused);
	libdw_budget_free(&b);
}

/* Walks of 250 ms with 500 frames. */
static void slow_images_are_refused_once(void **state)
{
	struct libdw_budget b = {0};
	int walks = 1;

	(void)state;
	while (!charge(&b, BAD, 250 * NS_PER_MS, 500))
		walks++;
	assert_in_range(walks, 5, 20);
	assert_true(libdw_budget_refuses(&b, BAD));
	assert_false(charge(&b, BAD, 250 * NS_PER_MS, 500));
	assert_false(libdw_budget_refuses(&b, GOOD));
	libdw_budget_free(&b);
}

/* A thousand slow images, one after another. */
static void many_slow_images_have_a_total(void **state)
{
	struct libdw_budget b = {0};
	uint64_t ns = 0;

	(void)state;
	for (uint64_t image = BAD; image < BAD + 1000; image++)
		do
			ns += 250 * NS_PER_MS;
		while (!charge(&b, image, 250 * NS_PER_MS, 500));
	assert_true(ns < LIBDW_BUDGET_TOTAL_NS + 1010 * 250 * NS_PER_MS);
	assert_false(charge(&b, GOOD, 50 * NS_PER_MS, FRAMES));
	libdw_budget_free(&b);
}

static void failures_refuse_their_image(void **state)
{
	struct libdw_budget b = {0};
	bool refused;

	(void)state;
	assert_int_equal(libdw_budget_fail(&b, BAD, 1, &refused), 0);
	assert_true(refused && libdw_budget_refuses(&b, BAD));
	assert_int_equal(libdw_budget_fail(&b, BAD, 1, &refused), 0);
	assert_false(refused || libdw_budget_refuses(&b, GOOD));
	libdw_budget_free(&b);
}

/* Each takes 4 s until the total is spent. */
static void the_time_of_failures_has_a_total(void **state)
{
	struct libdw_budget b = {0};
	uint64_t ns = 0, image = BAD;
	bool refused;

	(void)state;
	for (; libdw_budget_lasts(&b); image++) {
		uint64_t walk_ns = (libdw_budget_is_spent(&b) ? 500 : 4000) * NS_PER_MS;

		ns += walk_ns;
		if (image % 2)
			assert_int_equal(libdw_budget_fail(&b, image, walk_ns, &refused), 0);
		else
			refused = charge(&b, image, walk_ns, 1);
		assert_true(refused);
		assert_true(ns <= LIBDW_BUDGET_REFUSED_NS + 5 * NS_PER_S);
	}
	/* Others are walked in between. */
	assert_true(image > BAD + 30);
	libdw_budget_free(&b);
}

static void failures_without_an_image_end_it(void **state)
{
	struct libdw_budget b = {0};

	(void)state;
	for (int i = 1; i < LIBDW_BUDGET_FAILURES_MAX; i++)
		libdw_budget_fail_alone(&b, 1);
	assert_true(libdw_budget_lasts(&b));
	assert_false(charge(&b, GOOD, 1, 1)); /* a success between them */
	for (int i = 0; i < LIBDW_BUDGET_FAILURES_MAX; i++) {
		assert_true(libdw_budget_lasts(&b));
		libdw_budget_fail_alone(&b, 1);
	}
	assert_false(libdw_budget_lasts(&b));
	libdw_budget_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_images_are_never_refused),
		cmocka_unit_test(large_images_may_take_longer),
		cmocka_unit_test(slow_images_are_refused_once),
		cmocka_unit_test(many_slow_images_have_a_total),
		cmocka_unit_test(failures_refuse_their_image),
		cmocka_unit_test(the_time_of_failures_has_a_total),
		cmocka_unit_test(failures_without_an_image_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
