/* How much of a stack is copied follows what stacks need. */
#include "unwind/copy_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Stacks that need so many bytes, `edges` of each hundred more than any copy has; how often the size changed. */
static int feed(struct copy_size *c, uint32_t need, unsigned edges, unsigned n)
{
	int changed = 0;

	for (unsigned i = 0; i < n; i++) {
		bool edge = i % 100 < edges || need > c->bytes;

		changed += copy_size_note(c, edge ? c->bytes : need, edge);
	}
	return changed;
}

static void test_it_grows_to_what_is_needed_and_stays(void **state)
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
	/* And comes down again, a half each time. */
	feed(&c, 100, 0, COPY_SIZE_SAMPLES * (COPY_SIZE_QUIET + 1));
	assert_int_equal(c.bytes, 32760);
}

static void test_it_shrinks_where_little_is_read(void **state)
{
	struct copy_size c = {.bytes = 32768};

	(void)state;
	assert_int_equal(feed(&c, 3000, 0, COPY_SIZE_SAMPLES * COPY_SIZE_QUIET - 1), 0);
	assert_int_equal(feed(&c, 3000, 0, 100000), 3);
	assert_int_equal(c.bytes, COPY_SIZE_MIN);
}

static void test_a_few_that_go_deeper_do_not_matter_for_more_and_do_for_less(void **state)
{
	struct copy_size c = {.bytes = 32768};

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		assert_false(copy_size_note(&c, i % 200 ? 1000 : c.bytes, i % 200 == 0));
}

static void test_what_the_user_chose_stays(void **state)
{
	struct copy_size c = {.bytes = 8192, .fixed = true};

	(void)state;
	assert_int_equal(feed(&c, 60000, 0, 10000), 0);
	assert_int_equal(feed(&c, 10, 0, 10000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_grows_to_what_is_needed_and_stays),
		cmocka_unit_test(test_it_grows_no_further_than_records_do),
		cmocka_unit_test(test_it_shrinks_where_little_is_read),
		cmocka_unit_test(test_a_few_that_go_deeper_do_not_matter_for_more_and_do_for_less),
		cmocka_unit_test(test_what_the_user_chose_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
