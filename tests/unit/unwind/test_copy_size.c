/* The size of stack copies follows the size that stacks need. */
#include "unwind/copy_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Stacks that need this many bytes; `edges` of each hundred exceed any copy. Returns the number of
 * size changes. */
static int feed(struct copy_size *c, uint32_t need, unsigned edges, unsigned n)
{
	int changed = 0;

	for (unsigned i = 0; i < n; i++) {
		bool edge = i % 100 < edges || need > c->bytes;

		changed += copy_size_note(c, edge ? c->bytes : need, edge);
	}
	return changed;
}

static void test_the_copy_grows_to_the_needed_size_and_stays(void **state)
{
	struct copy_size c = {.bytes = 8192};

	(void)state;
	assert_int_equal(feed(&c, 30000, 0, 600), 2);
	assert_int_equal(c.bytes, 32768);
	assert_int_equal(feed(&c, 30000, 0, 100000), 0);
}

static void test_it_grows_no_further_than_records_do(void **state)
{
	struct copy_size c = {.bytes = 8192};

	(void)state;
	feed(&c, 0, 100, 100000);
	assert_int_equal(c.bytes, COPY_SIZE_MAX);
	/* The size comes down again, by half each time. */
	feed(&c, 100, 0, COPY_SIZE_SAMPLES * (COPY_SIZE_QUIET + 1));
	assert_int_equal(c.bytes, 32760);
}

static void test_the_copy_shrinks_when_little_is_read(void **state)
{
	struct copy_size c = {.bytes = 32768};

	(void)state;
	assert_int_equal(feed(&c, 3000, 0, COPY_SIZE_SAMPLES * COPY_SIZE_QUIET - 1), 0);
	assert_int_equal(feed(&c, 3000, 0, 100000), 3);
	assert_int_equal(c.bytes, COPY_SIZE_MIN);
}

static void test_rare_deep_stacks_neither_grow_nor_shrink_the_copy(void **state)
{
	struct copy_size c = {.bytes = 32768};

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		assert_false(copy_size_note(&c, i % 200 ? 1000 : c.bytes, i % 200 == 0));
}

static void test_the_users_choice_stays(void **state)
{
	struct copy_size c = {.bytes = 8192, .fixed = true};

	(void)state;
	assert_int_equal(feed(&c, 60000, 0, 10000), 0);
	assert_int_equal(feed(&c, 10, 0, 10000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_copy_grows_to_the_needed_size_and_stays),
		cmocka_unit_test(test_it_grows_no_further_than_records_do),
		cmocka_unit_test(test_the_copy_shrinks_when_little_is_read),
		cmocka_unit_test(test_rare_deep_stacks_neither_grow_nor_shrink_the_copy),
		cmocka_unit_test(test_the_users_choice_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
