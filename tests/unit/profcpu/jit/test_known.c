#include "profcpu/jit/known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_gap(const struct jit_known *k, uint64_t start, uint64_t end, uint64_t gap_start,
		       uint64_t gap_end)
{
	uint64_t a = 0, b = 0;

	assert_true(jit_known_find_gap(k, start, end, &a, &b));
	assert_int_equal(a, gap_start);
	assert_int_equal(b, gap_end);
}

static void test_gaps_are_ranges_without_methods(void **state)
{
	struct jit_known k = {.over = false};
	uint64_t a, b;

	(void)state;
	assert_gap(&k, 0x1000, 0x2000, 0x1000, 0x2000);
	assert_false(jit_known_find_gap(&k, 0x1000, 0x1000, &a, &b));
	jit_known_add(&k, 0x1800, 0x100);
	jit_known_add(&k, 0x1100, 0x100);
	jit_known_add(&k, 0x1180, 0x100);
	jit_known_add(&k, 0x3000, 0);
	jit_known_add(&k, UINT64_MAX - 1, 5);
	assert_gap(&k, 0x1100, 0x1101, 0x1100, 0x1101);
	jit_known_flush(&k);
	assert_false(jit_known_find_gap(&k, 0x1100, 0x1280, &a, &b));
	assert_gap(&k, 0x1000, 0x2000, 0x1000, 0x1100);
	assert_gap(&k, 0x1100, 0x2000, 0x1280, 0x1800);
	assert_gap(&k, 0x1150, 0x1500, 0x1280, 0x1500);
	assert_gap(&k, 0x1800, 0x2000, 0x1900, 0x2000);
	assert_false(jit_known_find_gap(&k, 0x1810, 0x1900, &a, &b));
	jit_known_free(&k);
}

/* Nothing wraps at the end of the address space. */
static void test_the_last_bytes_of_the_address_space_are_safe(void **state)
{
	struct jit_known k = {.over = false};
	uint64_t a, b;

	(void)state;
	jit_known_add(&k, UINT64_MAX - 0x10, 0x10);
	jit_known_flush(&k);
	assert_gap(&k, UINT64_MAX - 0x20, UINT64_MAX, UINT64_MAX - 0x20, UINT64_MAX - 0x10);
	assert_false(jit_known_find_gap(&k, UINT64_MAX - 0x10, UINT64_MAX, &a, &b));
	jit_known_free(&k);
}

/* When not all methods fit, no address counts as a gap. */
static void test_without_room_for_all_methods_no_gap_exists(void **state)
{
	struct jit_known k = {.over = true};
	uint64_t a, b;

	(void)state;
	jit_known_add(&k, 0x1000, 0x10);
	jit_known_flush(&k);
	assert_false(jit_known_find_gap(&k, 0x1000, 0x2000, &a, &b));
	jit_known_free(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps_are_ranges_without_methods),
		cmocka_unit_test(test_the_last_bytes_of_the_address_space_are_safe),
		cmocka_unit_test(test_without_room_for_all_methods_no_gap_exists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
