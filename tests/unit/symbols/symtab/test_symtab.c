#include "base/radix_sort.h"
#include "symbols/symtab/perf_tree.h"
#include "symbols/symtab/symtab.h"
#include "symbols/symtab/symtab_finish.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct symtab *table;

static int set_up(void **state)
{
	(void)state;
	return symtab_new(&table);
}

static int tear_down(void **state)
{
	(void)state;
	symbol_provider_free(&table->provider);
	return 0;
}

static void add(uint64_t start, uint64_t size, const char *name, int binding)
{
	struct symtab_entry e = {.start = start,
				 .end = start + size,
				 .name = name,
				 .name_len = (uint32_t)strlen(name),
				 .source = SYMBOL_SYMTAB,
				 .binding = (uint8_t)binding,
				 .type = STT_FUNC};

	assert_int_equal(symtab_add(table, &e, 1), 0);
}

static const char *name_at(uint64_t addr)
{
	struct symbol s;

	if (symbol_provider_find(&table->provider, addr, 0, &s))
		return "";
	assert_true(s.start <= addr && addr < s.end);
	return s.name;
}

static void an_empty_table_finds_nothing(void **state)
{
	(void)state;
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_string_equal(name_at(0), "");
	assert_string_equal(name_at(UINT64_MAX), "");
}

static void gaps_have_no_symbol(void **state)
{
	(void)state;
	add(0x2000, 0x10, "b", STB_GLOBAL);
	add(0x1000, 0x10, "a", STB_GLOBAL);
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_string_equal(name_at(0xfff), "");
	assert_string_equal(name_at(0x1000), "a");
	assert_string_equal(name_at(0x100f), "a");
	assert_string_equal(name_at(0x1010), "");
	assert_string_equal(name_at(0x2000), "b");
}

static void a_symbol_without_size_reaches_to_the_next(void **state)
{
	(void)state;
	add(0x1000, 0, "a", STB_GLOBAL);
	add(0x1800, 0x10, "b", STB_GLOBAL);
	add(0x2001, 0, "last", STB_GLOBAL);
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_string_equal(name_at(0x17ff), "a");
	assert_string_equal(name_at(0x1810), "");
	assert_string_equal(name_at(0x3fff), "last");
	assert_string_equal(name_at(0x4000), "");
}

static void a_symbol_without_size_ends_where_another_group_begins(void **state)
{
	struct symtab_entry e = {
		.start = 0x9000, .end = 0x9000, .name = "m", .name_len = 1, .group = 1};

	(void)state;
	add(0x1000, 0, "k", STB_GLOBAL);
	assert_int_equal(symtab_add(table, &e, 0), 0);
	assert_int_equal(symtab_finish(table, 0x9100), 0);
	assert_string_equal(name_at(0x1fff), "k");
	assert_string_equal(name_at(0x2000), "");
	assert_string_equal(name_at(0x90ff), "m");
	assert_string_equal(name_at(0x9100), "");
}

static void one_address_keeps_the_best_symbol(void **state)
{
	static const struct {
		uint64_t size_a, size_b;
		int binding_a, binding_b;
		const char *a, *b, *best;
	} cases[] = {
		{8, 0, STB_GLOBAL, STB_GLOBAL, "sized", "bare_____",
		 "bare_____"}, /* now it extends to the next symbol */
		{0, 8, STB_GLOBAL, STB_GLOBAL, "bare", "sized", "sized"},
		{8, 8, STB_WEAK, STB_LOCAL, "weak", "l", "l"},
		{8, 8, STB_LOCAL, STB_WEAK, "l", "weak", "l"},
		{8, 8, STB_LOCAL, STB_GLOBAL, "local", "g", "g"},
		{8, 8, STB_GLOBAL, STB_LOCAL, "g", "local", "g"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "__libc_x", "x", "x"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "x", "_xyz", "x"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "short", "longer", "longer"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "longer", "short", "longer"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "same1", "same2", "same1"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "SyS_read", "sys_read", "sys_read"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "compat_SyS_x", "compat_sys_x", "compat_sys_x"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "_ZN1aC1Ev", "_ZN1aC2Ev", "_ZN1aC1Ev"},
		/* a::f has 4 characters, plain 5; the underscore of _Z does not count */
		{8, 8, STB_GLOBAL, STB_GLOBAL, "_ZN1a1fEv", "plain", "plain"},
		{8, 8, STB_GLOBAL, STB_GLOBAL, "_ZN1a6methodEv", "pla", "_ZN1a6methodEv"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct symtab *was = table;

		assert_int_equal(symtab_new(&table), 0);
		add(0x1000, cases[i].size_a, cases[i].a, cases[i].binding_a);
		add(0x1000, cases[i].size_b, cases[i].b, cases[i].binding_b);
		add(0x1100, 0x10, "next", STB_GLOBAL);
		assert_int_equal(symtab_finish(table, 0), 0);
		assert_string_equal(name_at(0x1000), cases[i].best);
		symbol_provider_free(&table->provider);
		table = was;
	}
}

static void the_shape_of_the_tree_decides_overlaps(void **state)
{
	struct symbol s;

	(void)state;
	/* The first one is the root: it hides everything inside it, on both sides. */
	add(0x1000, 0x1000, "outer", STB_GLOBAL);
	add(0x1100, 0x10, "inner", STB_LOCAL);
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_string_equal(name_at(0x1105), "outer");
	tear_down(NULL);
	set_up(NULL);
	/* In the other order the search finds the inner one. From there it goes right, away from
	 * the outer one. */
	add(0x1100, 0x10, "inner", STB_LOCAL);
	add(0x1000, 0x1000, "outer", STB_GLOBAL);
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_string_equal(name_at(0x1000), "outer");
	assert_string_equal(name_at(0x10ff), "outer");
	assert_string_equal(name_at(0x1105), "inner");
	assert_string_equal(name_at(0x1110), "");
	assert_int_equal(symbol_provider_find(&table->provider, 0x1080, 0, &s), 0);
	assert_int_equal(s.end, 0x1100);
}

static void passes_without_fixing_up_keep_duplicates(void **state)
{
	(void)state;
	add(0x1000, 0, "_init", STB_GLOBAL);
	add(0x2000, 0x10, "_start", STB_GLOBAL);
	symtab_end_pass(table, true);
	add(0x1020, 0x10, "puts@plt", STB_GLOBAL);
	symtab_end_pass(table, false);
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_string_equal(name_at(0x1000), "_init");
	assert_string_equal(name_at(0x2008), "_start");
	/* _init extends to _start, but a rotation made the third one the root. Addresses right of
	 * it miss _init. */
	assert_string_equal(name_at(0x101f), "_init");
	assert_string_equal(name_at(0x1020), "puts@plt");
	assert_string_equal(name_at(0x1030), "");
}

static void hostile_sizes_are_harmless(void **state)
{
	(void)state;
	add(0x1000, UINT64_MAX, "wraps", STB_GLOBAL);
	add(UINT64_MAX, 0, "end", STB_GLOBAL);
	add(UINT64_MAX - 1, 1, "before", STB_GLOBAL);
	add(0, UINT64_MAX, "all", STB_GLOBAL);
	assert_int_equal(symtab_finish(table, 0), 0);
	for (uint64_t a = 0; a < 0x3000; a += 0x7ff)
		name_at(a);
	name_at(UINT64_MAX);
	assert_string_equal(name_at(UINT64_MAX - 1), "before");
}

static void names_can_be_borrowed_and_measured_late(void **state)
{
	struct symtab_entry e = {
		.start = 1, .end = 2, .name = "borrowed", .name_len = SYMTAB_LEN_UNKNOWN};
	char *huge = malloc(SYMTAB_NAME_MAX + 100);
	struct symbol s;

	(void)state;
	assert_non_null(huge);
	memset(huge, 'h', SYMTAB_NAME_MAX + 99);
	huge[SYMTAB_NAME_MAX + 99] = 0;
	assert_int_equal(symtab_add(table, &e, 0), 0);
	e = (struct symtab_entry){
		.start = 2, .end = 3, .name = huge, .name_len = SYMTAB_LEN_UNKNOWN};
	assert_int_equal(symtab_add(table, &e, 0), 0);
	e.start = 3;
	e.end = 4;
	assert_int_equal(symtab_add(table, &e, 1), 0);
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_int_equal(symbol_provider_find(&table->provider, 1, 0, &s), 0);
	assert_int_equal(s.name_len, 8);
	for (uint64_t a = 2; a < 4; a++) {
		assert_int_equal(symbol_provider_find(&table->provider, a, 0, &s), 0);
		assert_int_equal(s.name_len, SYMTAB_NAME_MAX);
		assert_int_equal(strlen(s.name), SYMTAB_NAME_MAX);
	}
	assert_string_equal(symtab_entry_at(table, 1)->name, "borrowed");
	assert_null(symtab_entry_at(table, 9));
	free(huge);
}

/* Clusters, gaps of all sizes and one distant symbol: the search agrees with a scan of all
 * symbols. */
static void steps_agree_with_a_search_of_all_symbols(void **state)
{
	enum { N = 3000 };
	static uint64_t starts[N], ends[N];
	uint64_t at = 0x401000;
	uint32_t seed = 7;
	char name[16];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		seed = seed * 1664525u + 1013904223u;
		at += i % 500 == 499 ? 0x10000000 : i % 7 ? 0 : seed >> 20;
		starts[i] = at;
		ends[i] = at += 1 + (seed >> 24);
		snprintf(name, sizeof(name), "%zu", i);
		add(starts[i], ends[i] - starts[i], name, STB_GLOBAL);
	}
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_true(table->nstarts > 1);
	for (size_t i = 0; i < N; i++) {
		const uint64_t addrs[] = {starts[i] - 1, starts[i], ends[i] - 1, ends[i],
					  (starts[i] + ends[i]) / 2};

		for (size_t k = 0; k < sizeof(addrs) / sizeof(*addrs); k++) {
			size_t found = 0;

			while (found < N && !(starts[found] <= addrs[k] && addrs[k] < ends[found]))
				found++;
			name[0] = 0;
			if (found < N)
				snprintf(name, sizeof(name), "%zu", found);
			assert_string_equal(name_at(addrs[k]), name);
		}
	}
	assert_string_equal(name_at(0), "");
	assert_string_equal(name_at(UINT64_MAX), "");
}

static void keys_keep_the_order_of_equals(void **state)
{
	enum { N = 5000 };
	static const uint64_t spreads[] = {1, 7, 1000, UINT32_MAX, UINT64_MAX};
	uint64_t addrs[N], copy[N], x = 88172645463325252ULL;
	uint32_t ids[N];

	(void)state;
	for (size_t k = 0; k < sizeof(spreads) / sizeof(spreads[0]); k++) {
		for (uint32_t i = 0; i < N; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			copy[i] = addrs[i] = x % spreads[k];
		}
		assert_int_equal(radix_sort(addrs, N, ids), 0);
		for (uint32_t i = 1; i < N; i++) {
			assert_true(copy[ids[i - 1]] <= copy[ids[i]]);
			assert_true(copy[ids[i - 1]] < copy[ids[i]] || ids[i - 1] < ids[i]);
		}
	}
}

/* Black height of a subtree, or -1 if it breaks a rule of red-black trees. Colours are hidden;
 * depth is visible. */
static int check_order(const struct perf_tree *t, uint32_t node, int64_t lo, int64_t hi, int depth)
{
	if (node == PERF_TREE_NIL)
		return 0;
	assert_true(depth < 40 && (int64_t)node > lo && (int64_t)node < hi);
	return 1 + check_order(t, perf_tree_left(t, node), lo, node, depth + 1) +
	       check_order(t, perf_tree_right(t, node), node, hi, depth + 1);
}

static void the_tree_stays_a_balanced_search_tree(void **state)
{
	enum { N = 20000 };
	struct perf_tree *t;
	uint8_t *in = calloc(N, 1);
	uint32_t x = 1;
	int members = 0;

	(void)state;
	assert_non_null(in);
	assert_int_equal(perf_tree_new(N, &t), 0);
	for (int i = 0; i < 4 * N; i++) {
		x = x * 1664525 + 1013904223;
		uint32_t key = (x >> 8) % N;

		if (in[key])
			perf_tree_erase(t, key);
		else
			perf_tree_insert(t, key);
		members += in[key] ? -1 : 1;
		in[key] ^= 1;
	}
	assert_int_equal(check_order(t, perf_tree_root(t), -1, N, 0), members);
	for (uint32_t key = 0; key < N; key++) {
		if (in[key])
			perf_tree_erase(t, key);
	}
	assert_true(perf_tree_root(t) == PERF_TREE_NIL);
	perf_tree_free(t);
	free(in);
}

/* A C++ name whose last template expands to 2^steps letters: each one names the previous one
 * twice. */
static void put_doubling_name(char *name, size_t cap, char first, int steps)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	int n = snprintf(name, cap, "_Z1%cI1pIiiES_IS0_S0_E", first);

	for (int i = 1; i < steps; i++)
		n += snprintf(name + n, cap - (size_t)n, "S_IS%c_S%c_E", digits[i], digits[i]);
	snprintf(name + n, cap - (size_t)n, "EvT_");
}

static void names_of_endless_expansion_are_compared_mangled(void **state)
{
	char f[512], g[512];

	(void)state;
	put_doubling_name(f, sizeof(f), 'f', 24);
	put_doubling_name(g, sizeof(g), 'g', 24);
	/* Demangled, the longer one wins: a<int>::f. Mangled, the one with fewer underscores
	 * wins. */
	add(0x1000, 8, "_ZN1aIiE1fEv", STB_GLOBAL);
	add(0x1000, 8, "b", STB_GLOBAL);
	for (uint64_t i = 0; i < 300; i++) {
		add(0x2000 + i * 16, 8, f, STB_GLOBAL);
		add(0x2000 + i * 16, 8, g, STB_GLOBAL);
	}
	add(0x10000, 8, "_ZN1aIiE1fEv", STB_GLOBAL);
	add(0x10000, 8, "b", STB_GLOBAL);
	assert_int_equal(symtab_finish(table, 0), 0);
	assert_string_equal(name_at(0x1000), "_ZN1aIiE1fEv");
	assert_string_equal(name_at(0x2000), f);
	assert_string_equal(name_at(0x10000), "b");
}

static void every_source_has_a_name(void **state)
{
	(void)state;
	for (int s = SYMBOL_NONE; s < SYMBOL_SOURCES; s++)
		assert_true(strlen(symbol_source_name(s)) > 2);
	assert_string_equal(symbol_source_name(SYMBOL_SOURCES), "none");
	assert_string_equal(symbol_source_name(SYMBOL_DEBUG_FILE), "debug-file");
}

#define TABLE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(an_empty_table_finds_nothing),
		TABLE_TEST(gaps_have_no_symbol),
		TABLE_TEST(a_symbol_without_size_reaches_to_the_next),
		TABLE_TEST(a_symbol_without_size_ends_where_another_group_begins),
		TABLE_TEST(one_address_keeps_the_best_symbol),
		TABLE_TEST(the_shape_of_the_tree_decides_overlaps),
		TABLE_TEST(passes_without_fixing_up_keep_duplicates),
		TABLE_TEST(hostile_sizes_are_harmless),
		TABLE_TEST(names_can_be_borrowed_and_measured_late),
		TABLE_TEST(steps_agree_with_a_search_of_all_symbols),
		TABLE_TEST(names_of_endless_expansion_are_compared_mangled),
		cmocka_unit_test(keys_keep_the_order_of_equals),
		cmocka_unit_test(the_tree_stays_a_balanced_search_tree),
		cmocka_unit_test(every_source_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
