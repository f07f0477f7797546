/* symbols/jit/methods: methods of a process by address and time. */
#include "tests/unit/jit_methods_check.h"

static void a_lookup_reports_how_long_it_is_valid(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 0, UINT64_MAX, "always"), 0);
	assert_int_equal(add(m, 0x2000, 0x100, 50, 0, 90, "a while"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0xfff, 7, NULL, 0, UINT64_MAX);
	assert_at(m, 0x1000, 7, "always", 0, UINT64_MAX);
	assert_at(m, 0x10ff, 7, "always", 0, UINT64_MAX);
	assert_at(m, 0x1100, 7, NULL, 0, UINT64_MAX);
	assert_at(m, 0x2010, 49, NULL, 0, 50);
	assert_at(m, 0x2010, 50, "a while", 50, 90);
	assert_at(m, 0x2010, 89, "a while", 50, 90);
	assert_at(m, 0x2010, 90, NULL, 90, UINT64_MAX);
	jit_methods_free(m);
}

static void later_code_completely_ends_the_code_it_overlaps(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 0, UINT64_MAX, "a"), 0);
	assert_int_equal(add(m, 0x1100, 0x100, 0, 0, UINT64_MAX, "b"), 0);
	assert_int_equal(add(m, 0x10f0, 0x20, 100, 100, UINT64_MAX, "over both"), 0);
	assert_int_equal(add(m, 0x1100, 0x100, 200, 200, UINT64_MAX, "b again"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 99, "a", 0, 100);
	assert_at(m, 0x1000, 100, NULL, 100, UINT64_MAX);
	assert_at(m, 0x1100, 99, "b", 0, 100);
	assert_at(m, 0x10f8, 150, "over both", 100, 200);
	assert_at(m, 0x1100, 150, "over both", 100, 200);
	assert_at(m, 0x1180, 150, NULL, 100, 200);
	assert_at(m, 0x1180, 200, "b again", 200, UINT64_MAX);
	assert_true(at(m, 0x1000, 0).method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
}

static void code_found_between_two_polls_is_valid_from_the_first(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 10, UINT64_MAX, "old"), 0);
	assert_int_equal(add(m, 0x1000, 0x80, 20, 30, UINT64_MAX, "new"), 0);
	assert_int_equal(add(m, 0x2000, 0x80, 20, 30, UINT64_MAX, "alone"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 29, "old", 0, 30);
	assert_at(m, 0x1000, 30, "new", 30, UINT64_MAX);
	assert_at(m, 0x1090, 30, NULL, 30, UINT64_MAX);
	assert_at(m, 0x2000, 20, "alone", 20, UINT64_MAX);
	assert_int_equal(at(m, 0x1000, 29).method->doubt_ns, 20);
	assert_true(at(m, 0x2000, 29).method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
}

static void only_the_later_of_two_in_one_poll_is_valid(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 10, UINT64_MAX, "first"), 0);
	assert_int_equal(add(m, 0x1000, 0x80, 0, 10, UINT64_MAX, "second"), 0);
	assert_int_equal(add(m, 0x1000, 0x80, 10, 20, UINT64_MAX, "second"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 0, "second", 0, UINT64_MAX);
	assert_int_equal(jit_methods_count(m, SOURCE), 3);
	assert_int_equal(jit_methods_hidden_count(m, SOURCE), 2);
	jit_methods_free(m);
}

static void an_ended_method_is_valid_before_its_successor(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 10, UINT64_MAX, "old"), 0);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1001, 15), -ENOENT);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1000, 15), 0);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1000, 16), -ENOENT);
	assert_int_equal(add(m, 0x1000, 0x100, 10, 20, UINT64_MAX, "new"), 0);
	jit_methods_end_all(m, 40);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 14, "old", 0, 15);
	assert_at(m, 0x1000, 15, "new", 15, 40);
	assert_at(m, 0x1000, 40, NULL, 40, UINT64_MAX);
	assert_true(at(m, 0x1000, 14).method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
}

static void impossible_input_is_refused(void **state)
{
	struct jit_methods *m = new_methods();
	struct jit_method method = {.start = 1, .bytes = 1, .until_ns = 1, .name = "x", .len = 1};

	(void)state;
	assert_int_equal(add(m, 0x1000, 0, 0, 0, UINT64_MAX, "x"), -EINVAL);
	assert_int_equal(add(m, UINT64_MAX - 3, 4, 0, 0, UINT64_MAX, "x"), -EINVAL);
	assert_int_equal(add(m, 0x1000, 4, 5, 0, 5, "x"), -EINVAL);
	assert_int_equal(jit_methods_add(m, &method), -EINVAL);
	assert_int_equal(add(m, UINT64_MAX - 4, 4, 0, 0, UINT64_MAX, "last bytes"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, UINT64_MAX - 1, 0, "last bytes", 0, UINT64_MAX);
	assert_at(m, UINT64_MAX, 0, NULL, 0, UINT64_MAX);
	jit_methods_free(m);
}

/* The number of pairs grows with the square; a target may cause that. */
static void excessive_overlap_is_refused(void **state)
{
	enum { N = 6000 };
	struct jit_methods *m = new_methods();

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(add(m, 0x1000 + 16 * i, 16, 0, 100, UINT64_MAX, "old"), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(add(m, 0x1000, 16 * N + i, 100, 200, UINT64_MAX, "new"), 0);
	assert_int_equal(jit_methods_finish(m), -E2BIG);
	jit_methods_free(m);
}

/* Its IL map is not that of the older method that it replaced. */
static void il_of_refused_methods_is_dropped(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	for (uint32_t i = 0; i < JIT_METHODS_MAX; i++)
		assert_int_equal(add(m, 0x1000 + 16 * (uint64_t)i, 16, 0, 0, UINT64_MAX, "a"), 0);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1000, 5), 0);
	assert_int_equal(add(m, 0x1000, 16, 10, 10, UINT64_MAX, "b"), -E2BIG);
	assert_int_equal(add(m, 0x1000 + 16 * (JIT_METHODS_MAX - 1), 16, 10, 10, UINT64_MAX, "b"),
			 -E2BIG);
	assert_int_equal(add(m, 8, 16, 10, 10, UINT64_MAX, "new"), -E2BIG);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1000, 6), -ENOENT);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1000 + 16 * (JIT_METHODS_MAX - 1), 6),
			 -ENOENT);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 8, 6), -ENOENT);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1010, 6), 0);
	assert_int_equal(jit_methods_get(m, SOURCE, 0)->il, 6);
	assert_int_equal(jit_methods_get(m, SOURCE, 0)->until_ns, 10);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1000, 20), -ENOENT);
	jit_methods_free(m);
}

/* Code from before the limit stays; moved code needs no further name. */
static void methods_take_no_more_memory_than_their_limit(void **state)
{
	struct jit_methods *m = new_methods();
	char large[2 * JIT_METHODS_EACH_BYTES] = {0};

	(void)state;
	assert_int_equal(add(m, 0x1000, 16, 0, 0, UINT64_MAX, "before the limit"), 0);
	memset(large, 'x', sizeof(large) - 1);
	uint64_t before = jit_methods_taken(m);

	jit_methods_limit_memory(m, 3 * JIT_METHODS_EACH_BYTES + 7 + 5);
	assert_int_equal(add(m, 0x2000, 16, 0, 0, UINT64_MAX, "six by"), 0);
	assert_int_equal(jit_methods_taken(m) - before, JIT_METHODS_EACH_BYTES + 7);
	assert_int_equal(add(m, 0x1000, 16, 10, 10, UINT64_MAX, large), -E2BIG);
	/* The code there may have been replaced. */
	assert_int_equal(jit_methods_get(m, SOURCE, 0)->until_ns, 10);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1000, 5), -ENOENT);
	assert_int_equal(jit_methods_move(m, SOURCE, 0, 0x3000, 20), 0);
	assert_int_equal(add(m, 0x4000, 16, 10, 10, UINT64_MAX, "four"), 0);
	assert_int_equal(add(m, 0x5000, 16, 10, 10, UINT64_MAX, "1"), -E2BIG);
	assert_int_equal(jit_methods_count(m, SOURCE), 4);
	assert_int_equal(jit_methods_refused_count(m), 2);
	jit_methods_free(m);
}

/* Exact times: each method ends all that it overlaps. Compared for each address and time. */
static void many_methods_agree_with_a_linear_search(void **state)
{
	enum { N = 300, ADDRS = 96, TIMES = 160 };
	static struct {
		uint64_t start, from, until;
		uint32_t bytes;
		bool overlapped;
	} model[N];
	uint32_t seed = 12345;

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct jit_methods *m = new_methods();

		for (int i = 0; i < N; i++) {
			char name[16];

			seed = seed * 1664525 + 1013904223;
			model[i].start = seed >> 24 & 63;
			model[i].bytes = 1 + (seed >> 16 & 15);
			model[i].from = (uint64_t)i / 2;
			model[i].until =
				seed & 0x800 ? UINT64_MAX : model[i].from + 1 + (seed >> 5 & 31);
			snprintf(name, sizeof(name), "%d", i);
			assert_int_equal(add(m, model[i].start, model[i].bytes, model[i].from, 0,
					     model[i].until, name),
					 0);
			for (int k = 0; k < i; k++)
				if (model[k].start < model[i].start + model[i].bytes &&
				    model[i].start < model[k].start + model[k].bytes &&
				    model[k].until > model[i].from)
					model[k].until = model[i].from;
		}
		assert_int_equal(jit_methods_finish(m), 0);
		for (uint64_t addr = 0; addr < ADDRS; addr++)
			for (uint64_t time = 0; time < TIMES; time++) {
				struct jit_methods_result a = at(m, addr, time);
				int found = -1;

				for (int k = 0; k < N; k++)
					if (addr - model[k].start < model[k].bytes &&
					    time >= model[k].from && time < model[k].until)
						found = k;
				assert_int_equal(a.method ? atoi(a.method->name) : -1, found);
				/* The gaps are maximal: one step further is a method. */
				if (!a.method && a.until_ns != UINT64_MAX)
					assert_non_null(at(m, addr, a.until_ns).method);
				if (!a.method && a.from_ns)
					assert_non_null(at(m, addr, a.from_ns - 1).method);
			}
		jit_methods_free(m);
	}
}

static void a_set_of_numbers_knows_neighbours(void **state)
{
	static const uint32_t sizes[] = {1, 63, 64, 65, 4095, 4096, 4097, 300000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t n = sizes[i], last = n - 1, mid = n / 2;
		struct bitset s;

		assert_int_equal(bitset_init(&s, n), 0);
		assert_int_equal(bitset_next(&s, 0), BITSET_NONE);
		assert_int_equal(bitset_prev(&s, n + 5), BITSET_NONE);
		bitset_add(&s, last);
		assert_int_equal(bitset_next(&s, 0), last);
		assert_int_equal(bitset_prev(&s, UINT32_MAX), last);
		assert_int_equal(bitset_next(&s, n), BITSET_NONE);
		bitset_add(&s, mid);
		assert_int_equal(bitset_next(&s, 0), mid);
		assert_int_equal(bitset_prev(&s, last ? last - 1 : 0),
				 mid < last || !last ? mid : BITSET_NONE);
		bitset_remove(&s, mid);
		bitset_remove(&s, last);
		assert_int_equal(bitset_next(&s, 0), BITSET_NONE);
		bitset_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lookup_reports_how_long_it_is_valid),
		cmocka_unit_test(later_code_completely_ends_the_code_it_overlaps),
		cmocka_unit_test(code_found_between_two_polls_is_valid_from_the_first),
		cmocka_unit_test(only_the_later_of_two_in_one_poll_is_valid),
		cmocka_unit_test(an_ended_method_is_valid_before_its_successor),
		cmocka_unit_test(impossible_input_is_refused),
		cmocka_unit_test(excessive_overlap_is_refused),
		cmocka_unit_test(il_of_refused_methods_is_dropped),
		cmocka_unit_test(methods_take_no_more_memory_than_their_limit),
		cmocka_unit_test(many_methods_agree_with_a_linear_search),
		cmocka_unit_test(a_set_of_numbers_knows_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
