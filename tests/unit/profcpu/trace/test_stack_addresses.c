#include "profcpu/trace/stack_addresses.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void take(struct stack_addresses *s, uint64_t leaf, uint64_t caller)
{
	const uint64_t stack[] = {leaf, caller};

	stack_addresses_take(s, stack, sizeof(stack), 8);
}

static void each_address_comes_once(void **state)
{
	const uint32_t narrow[] = {0x5000, 0x6001};
	struct stack_addresses s = {0};

	(void)state;
	take(&s, 0x1000, 0x2001);
	take(&s, 0x1000, 0x2001);
	take(&s, 0x3000, 0x2001);
	stack_addresses_take(&s, narrow, sizeof(narrow), 4);
	assert_int_equal(s.fresh.len, 5);
	assert_int_equal(s.fresh.v[0], 0x1000);
	/* A return address may be behind its method. */
	assert_int_equal(s.fresh.v[1], 0x2000);
	assert_int_equal(s.fresh.v[2], 0x3000);
	assert_int_equal(s.fresh.v[3], 0x5000);
	assert_int_equal(s.fresh.v[4], 0x6000);
	assert_false(stack_addresses_are_many(&s));
	stack_addresses_clear(&s);
	take(&s, 0x1000, 0x2001);
	assert_int_equal(s.fresh.len, 2);
	assert_int_equal(s.stacks_left_out, 0);
	assert_int_equal(s.left_out, 0);
	stack_addresses_free(&s);
}

static void stacks_over_the_limit_are_counted(void **state)
{
	struct stack_addresses s = {0};

	(void)state;
	for (uint64_t i = 0; i < STACK_ADDRESSES_STACKS_MAX + 10; i++)
		take(&s, i % 7, 0x1000 + i);
	assert_true(stack_addresses_are_many(&s));
	assert_int_equal(s.stacks_left_out, 10);
	/* One that is known lacks nothing. */
	take(&s, 0, 0x1000);
	assert_int_equal(s.stacks_left_out, 10);
	stack_addresses_clear(&s);
	take(&s, 1, 0x1000 + STACK_ADDRESSES_STACKS_MAX);
	assert_int_equal(s.stacks_left_out, 10);
	assert_int_equal(s.fresh.len, 2);
	stack_addresses_free(&s);
}

static void addresses_over_the_limit_are_counted(void **state)
{
	struct stack_addresses s = {0};
	uint64_t stack[64], next = 0x10000;

	(void)state;
	while (s.fresh.len < STACK_ADDRESSES_MAX) {
		for (size_t i = 0; i < 64; i++)
			stack[i] = next += 16;
		stack_addresses_take(&s, stack, sizeof(stack), 8);
	}
	assert_int_equal(s.left_out, 0);
	take(&s, 1, 3);
	assert_int_equal(s.left_out, 2);
	stack_addresses_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_comes_once),
		cmocka_unit_test(stacks_over_the_limit_are_counted),
		cmocka_unit_test(addresses_over_the_limit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
