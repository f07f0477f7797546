/* Code that processes made: lookups of known code, requests for unknown code, and forgetting. */
#include "tests/unit/allocated_bytes.h"
#include "tests/unit/under_valgrind.h"
#include "unwind/jit_codes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW UINT64_C(5000000000)

static int begin(void **state)
{
	struct jit_codes *c;
	int r = jit_codes_new(JIT_CODES_BYTES_MAX, &c);

	*state = c;
	return r;
}

static int end(void **state)
{
	jit_codes_free(*state);
	return 0;
}

/* Code with one rule, which gives the size of its frame. */
static struct jit_code code_of(uint64_t start, uint64_t end, int32_t bytes)
{
	struct jit_code code = {.start = start, .end = end};

	code.rules.rows = calloc(1, sizeof(*code.rules.rows));
	assert_non_null(code.rules.rows);
	code.rules.nrows = 1;
	code.rules.rows[0].rule =
		(struct unwind_rule){.kind = UNWIND_PLAIN, .cfa_reg = ARCH_SP, .cfa_add = bytes};
	return code;
}

static void put(struct jit_codes *c, int32_t pid, uint64_t start, uint64_t stop, int32_t bytes,
		bool movable)
{
	struct jit_code code = code_of(start, stop, bytes);
	const struct jit_code *known;
	bool request;

	/* Results are for processes with requests. */
	(void)jit_codes_find(c, pid, 1, NOW, &known, &request);
	code.movable = movable;
	assert_int_equal(jit_codes_put(c, pid, start, &code, NOW), 0);
	assert_null(code.rules.rows); /* owned by the callee */
}

/* The rule at an address: bytes of its frame, or -errno. */
static int32_t find(struct jit_codes *c, int32_t pid, uint64_t addr, uint64_t now,
		    bool wants_request)
{
	const struct jit_code *code;
	bool request = false;
	int r = jit_codes_find(c, pid, addr, now, &code, &request);

	assert_int_equal(request, wants_request);
	return r ? r : code_rules_at(&code->rules, addr - code->start)->cfa_add;
}

static void test_unknown_code_is_requested_once(void **state)
{
	struct jit_codes *c = *state;

	assert_int_equal(find(c, 7, 0x1010, NOW, true), -EAGAIN);
	assert_int_equal(find(c, 7, 0x1010, NOW + 1, false), -EAGAIN);
	put(c, 7, 0x1000, 0x1100, 24, false);
	assert_int_equal(find(c, 7, 0x1010, NOW, false), 24);
	assert_int_equal(find(c, 7, 0x10ff, NOW, false), 24);
	assert_int_equal(find(c, 7, 0x1100, NOW, true), -EAGAIN);
	assert_int_equal(find(c, 8, 0x1010, NOW, true), -EAGAIN); /* another process */
}

static void test_code_without_an_owner_is_requested_rarely(void **state)
{
	struct jit_codes *c = *state;

	assert_int_equal(find(c, 7, 0x1010, NOW, true), -EAGAIN);
	assert_int_equal(jit_codes_put(c, 7, 0x1010, NULL, NOW), 0);
	assert_int_equal(find(c, 7, 0x1010, NOW + 1, false), -ENOENT);
	assert_int_equal(find(c, 7, 0x1010, NOW + 2 * JIT_CODES_UNKNOWN_NS, true), -ENOENT);
	assert_int_equal(find(c, 7, 0x1010, NOW + 2 * JIT_CODES_UNKNOWN_NS + 1, false), -ENOENT);
	/* A sample can be older than the answer: it is taken first and looked up later. */
	assert_int_equal(find(c, 7, 0x1010, NOW, false), -ENOENT);
}

static void test_movable_code_is_requested_again(void **state)
{
	struct jit_codes *c = *state;

	put(c, 7, 0x1000, 0x1100, 24, true);
	assert_int_equal(find(c, 7, 0x1010, NOW - 1, false), 24); /* a sample from before */
	assert_int_equal(find(c, 7, 0x1010, NOW + 1, false), 24);
	assert_int_equal(find(c, 7, 0x1010, NOW + 2 * JIT_CODES_MOVABLE_NS, true), 24);
	assert_int_equal(find(c, 7, 0x1010, NOW + 2 * JIT_CODES_MOVABLE_NS, false), 24);
	put(c, 7, 0x1000, 0x1080, 40, true);
	assert_int_equal(find(c, 7, 0x1010, NOW, false), 40);
	/* The code is gone. */
	assert_int_equal(jit_codes_put(c, 7, 0x1010, NULL, NOW), 0);
	assert_int_equal(find(c, 7, 0x1020, NOW, true), -EAGAIN);
}

static void test_new_code_takes_the_place_of_all_that_it_overlaps(void **state)
{
	struct jit_codes *c = *state;

	put(c, 7, 0x1000, 0x1100, 1, false);
	put(c, 7, 0x1200, 0x1300, 2, false);
	put(c, 7, 0x1400, 0x1500, 3, false);
	put(c, 7, 0x1080, 0x1280, 4, false);
	assert_int_equal(find(c, 7, 0x1000, NOW, true), -EAGAIN);
	assert_int_equal(find(c, 7, 0x1080, NOW, false), 4);
	assert_int_equal(find(c, 7, 0x127f, NOW, false), 4);
	assert_int_equal(find(c, 7, 0x1280, NOW, true), -EAGAIN);
	assert_int_equal(find(c, 7, 0x1400, NOW, false), 3);
	jit_codes_forget(c, 7);
	assert_int_equal(find(c, 7, 0x1400, NOW, true), -EAGAIN);
}

static void test_results_for_forgotten_processes_are_ignored(void **state)
{
	struct jit_codes *c = *state;
	struct jit_code code = code_of(0x1000, 0x1100, 24);

	put(c, 6, 0x1000, 0x1100, 1, false);
	assert_int_equal(find(c, 7, 0x1010, NOW, true), -EAGAIN);
	put(c, 8, 0x1000, 0x1100, 3, false);
	jit_codes_forget(c, 6);
	jit_codes_forget(c, 7);
	assert_int_equal(jit_codes_put(c, 7, 0x1010, &code, NOW), 0);
	assert_non_null(code.rules.rows);
	code_rules_free(&code.rules);
	assert_int_equal(find(c, 7, 0x1010, NOW, true), -EAGAIN);
	assert_int_equal(find(c, 8, 0x1010, NOW, false), 3);
	jit_codes_forget(c, 9); /* unknown */
}

static void test_ended_processes_and_old_requests_take_no_memory(void **state)
{
	struct jit_codes *c = *state;
	size_t before = allocated_bytes();

	if (under_valgrind())
		skip(); /* its allocations are not counted */
	for (int32_t pid = 1; pid <= 100000; pid++) {
		put(c, pid, 0x1000, 0x1100, 24, false);
		if (pid > 10)
			jit_codes_forget(c, pid - 10);
	}
	assert_true(allocated_bytes() < before + 100000);
	for (uint64_t i = 0; i < 1000000; i++)
		(void)find(c, 7, 0x100000 + i, NOW, true);
	assert_true(allocated_bytes() < before + (8 << 20));
	/* The limit is on all processes together. */
	for (int32_t pid = 1000; pid < 1016; pid++)
		for (uint64_t i = 0; i < JIT_CODES_REQUESTS_MAX - 1; i++)
			(void)find(c, pid, 0x100000 + i, NOW, true);
	assert_true(allocated_bytes() < before + (8 << 20));
}

static void test_rules_over_the_limit_are_forgotten(void **state)
{
	struct jit_codes *c;

	(void)state;
	assert_int_equal(jit_codes_new(10000, &c), 0);
	put(c, 7, 0x1000, 0x1100, 24, false);
	assert_int_equal(find(c, 7, 0x1000, NOW, false), 24);
	for (uint64_t i = 1; i < 1000; i++)
		put(c, 7, 0x1000 + 0x100 * i, 0x1100 + 0x100 * i, 24, false);
	assert_int_equal(find(c, 7, 0x1000 + 0x100 * 999, NOW, false), 24);
	assert_int_equal(find(c, 7, 0x1000, NOW, true), -EAGAIN);
	jit_codes_free(c);
}

static void test_code_of_another_address_is_not_used(void **state)
{
	struct jit_codes *c = *state;
	struct jit_code code = code_of(0x1000, 0x1100, 24);

	assert_int_equal(find(c, 7, 0x1100, NOW, true), -EAGAIN);
	assert_int_equal(jit_codes_put(c, 7, 0x1100, &code, NOW), 0);
	code_rules_free(&code.rules);
	assert_int_equal(find(c, 7, 0x1100, NOW, false), -ENOENT);
	assert_int_equal(find(c, 7, 0x1000, NOW, true), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unknown_code_is_requested_once, begin, end),
		cmocka_unit_test_setup_teardown(test_code_without_an_owner_is_requested_rarely,
						begin, end),
		cmocka_unit_test_setup_teardown(test_movable_code_is_requested_again, begin, end),
		cmocka_unit_test_setup_teardown(
			test_new_code_takes_the_place_of_all_that_it_overlaps, begin, end),
		cmocka_unit_test_setup_teardown(test_results_for_forgotten_processes_are_ignored,
						begin, end),
		cmocka_unit_test_setup_teardown(
			test_ended_processes_and_old_requests_take_no_memory, begin, end),
		cmocka_unit_test(test_rules_over_the_limit_are_forgotten),
		cmocka_unit_test_setup_teardown(test_code_of_another_address_is_not_used, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
