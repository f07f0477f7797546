#include "symbols/jit/names.h"
#include "symbols/jit/perfmap.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct jit_names_sources sources;

static void begin(void)
{
	sources = (struct jit_names_sources){0};
	assert_int_equal(jit_methods_new(&sources.methods), 0);
}

static void add(enum symbol_source source, uint64_t start, uint32_t bytes, uint64_t from,
		uint64_t sure, const char *name)
{
	assert_int_equal(jit_methods_add(sources.methods,
					 &(struct jit_method){.start = start,
							      .bytes = bytes,
							      .source = source,
							      .from_ns = from,
							      .sure_ns = sure,
							      .until_ns = UINT64_MAX,
							      .name = name,
							      .len = (uint32_t)strlen(name)}),
			 0);
}

static struct symbol_provider *finish(const char *perfmap)
{
	struct symbol_provider *names = NULL;

	if (perfmap)
		assert_int_equal(
			perfmap_parse(perfmap, strlen(perfmap), &sources.perfmap, NULL, NULL), 0);
	assert_int_equal(jit_methods_finish(sources.methods), 0);
	assert_int_equal(jit_names_new(&sources, &names), 0);
	return names;
}

static struct symbol find(struct symbol_provider *names, uint64_t addr, uint64_t time)
{
	struct symbol s;

	assert_int_equal(symbol_provider_find(names, addr, time, &s), 0);
	assert_int_equal(symbol_provider_piece(names, addr, time), s.piece);
	assert_true(s.from_ns <= time && time < s.until_ns);
	return s;
}

static void assert_name(struct symbol_provider *names, uint64_t addr, uint64_t time,
			enum symbol_source source, const char *name)
{
	struct symbol s = find(names, addr, time);

	assert_string_equal(s.name, name);
	assert_int_equal(s.name_len, strlen(name));
	assert_int_equal(s.source, source);
}

static void a_perf_map_alone_is_unchanged(void **state)
{
	struct symbol_provider *names;

	(void)state;
	begin();
	names = finish("1000 10 a\n");
	assert_false(names->ops->timed);
	assert_name(names, 0x1000, 5, SYMBOL_PERFMAP, "a");
	assert_int_equal(jit_names_stats(names).results, 0);
	symbol_provider_free(names);

	begin();
	assert_null(finish(NULL));
}

static void sources_with_times_win_and_the_perf_map_fills_gaps(void **state)
{
	struct symbol_provider *names;
	struct symbol s;

	(void)state;
	begin();
	add(SYMBOL_JITDUMP, 0x1000, 0x100, 100, 0, "first()");
	add(SYMBOL_JITDUMP, 0x1000, 0x100, 200, 0, "second()");
	names = finish("1000 100 second()\n2000 10 other()\n");
	assert_true(names->ops->timed);
	assert_name(names, 0x1000, 150, SYMBOL_JITDUMP, "first()");
	assert_name(names, 0x1000, 200, SYMBOL_JITDUMP, "second()");
	assert_name(names, 0x2000, 200, SYMBOL_PERFMAP, "other()");
	/* Before the first load the map is the only source, up to the load. */
	s = find(names, 0x1000, 50);
	assert_int_equal(s.source, SYMBOL_PERFMAP);
	assert_int_equal(s.from_ns, 0);
	assert_int_equal(s.until_ns, 100);
	assert_int_equal(symbol_provider_find(names, 0x3000, 0, &s), -ENOENT);
	assert_int_equal(symbol_provider_piece(names, 0x3000, 0), SYMBOL_NO_PIECE);
	/* Each lookup counts once, however often it is repeated. */
	assert_int_equal(jit_names_stats(names).perfmap_contradictions, 1);
	assert_name(names, 0x1080, 151, SYMBOL_JITDUMP, "first()");
	assert_int_equal(jit_names_stats(names).perfmap_contradictions, 1);
	assert_int_equal(jit_names_stats(names).contradictions, 0);
	symbol_provider_free(names);
}

static void the_source_with_more_detail_completes_a_name(void **state)
{
	static const char plain
		[] = "instance !1& [L] D`2::FindValue(!0)",
	   full[] = "instance !1& [L] D`2[System.__Canon,System.Int32]::FindValue(!0)[QuickJitted]";
	struct symbol_provider *names;
	char map[256];

	(void)state;
	begin();
	add(SYMBOL_MEMORY, 0x1000, 0x100, 0, 10, plain);
	add(SYMBOL_MEMORY, 0x2000, 0x100, 0, 10, plain);
	add(SYMBOL_MEMORY, 0x3000, 0x100, 0, 10, "void [a] B::C()");
	snprintf(map, sizeof(map), "1000 100 %s\n2010 10 %s\n3000 100 void [a] B::D()\n", full,
		 full);
	names = finish(map);
	assert_name(names, 0x1010, 50, SYMBOL_MEMORY, full);
	/* Another start means another body. */
	assert_name(names, 0x2010, 50, SYMBOL_MEMORY, plain);
	assert_name(names, 0x3000, 50, SYMBOL_MEMORY, "void [a] B::C()");
	assert_int_equal(jit_names_stats(names).completed, 1);
	assert_int_equal(jit_names_stats(names).perfmap_contradictions, 1);
	symbol_provider_free(names);
}

static void conflicts_of_sources_with_times_are_counted(void **state)
{
	struct symbol_provider *names;

	(void)state;
	begin();
	add(SYMBOL_MEMORY, 0x1000, 0x100, 0, 10, "void [a] B::C()");
	add(SYMBOL_RUNDOWN, 0x1000, 0x100, 0, 0, "void [a] B::D()");
	names = finish(NULL);
	assert_name(names, 0x1000, 5, SYMBOL_RUNDOWN, "void [a] B::D()");
	assert_int_equal(jit_names_stats(names).contradictions, 1);
	symbol_provider_free(names);
}

static void doubtful_lookups_are_counted(void **state)
{
	struct symbol_provider *names;

	(void)state;
	begin();
	add(SYMBOL_MEMORY, 0x1000, 0x100, 0, 10, "old()");
	add(SYMBOL_MEMORY, 0x1000, 0x100, 20, 30, "new()");
	names = finish(NULL);
	assert_name(names, 0x1000, 19, SYMBOL_MEMORY, "old()");
	assert_int_equal(jit_names_stats(names).doubts, 0);
	assert_int_equal(find(names, 0x1000, 19).until_ns, 20);
	assert_name(names, 0x1000, 20, SYMBOL_MEMORY, "old()");
	assert_int_equal(jit_names_stats(names).doubts, 1);
	assert_name(names, 0x1000, 30, SYMBOL_MEMORY, "new()");
	assert_int_equal(jit_names_stats(names).doubts, 1);
	symbol_provider_free(names);
}

static void a_jitdump_that_stopped_early_comes_last(void **state)
{
	(void)state;
	for (int cut = 0; cut < 3; cut++) {
		struct symbol_provider *names;

		begin();
		sources.open = cut == 2; /* the process still runs */
		add(SYMBOL_JITDUMP, 0x1000, 0x100, 100, 0, "stale()");
		add(SYMBOL_JITDUMP, 0x5000, 0x100, 100, 0, "only here()");
		if (!cut)
			add(SYMBOL_MEMORY, 0x1000, 0x100, 200, 300, "now()");
		sources.jitdump_stats.last_ns = 100;
		sources.jitdump_stats.cut = cut;
		names = finish("1000 100 now()\n");
		assert_true(jit_names_stats(names).jitdump_early);
		assert_name(names, 0x1000, 300, cut ? SYMBOL_PERFMAP : SYMBOL_MEMORY, "now()");
		assert_name(names, 0x5000, 300, SYMBOL_JITDUMP, "only here()");
		symbol_provider_free(names);
	}
}

static void a_complete_jitdump_comes_first(void **state)
{
	struct symbol_provider *names;

	(void)state;
	begin();
	add(SYMBOL_JITDUMP, 0x1000, 0x100, 100, 0, "void [a] B::C()[Tier]");
	add(SYMBOL_MEMORY, 0x1000, 0x100, 100, 300, "void [a] B::C()");
	add(SYMBOL_MEMORY, 0x9000, 0x100, 500, 600, "stub ReportStubBlock<X>");
	sources.jitdump_stats.last_ns = 100;
	names = finish(NULL);
	assert_false(jit_names_stats(names).jitdump_early);
	assert_name(names, 0x1000, 300, SYMBOL_JITDUMP, "void [a] B::C()[Tier]");
	assert_int_equal(jit_names_stats(names).contradictions, 0);
	symbol_provider_free(names);
}

static void without_a_common_clock_the_last_state_is_used(void **state)
{
	struct symbol_provider *names;

	(void)state;
	begin();
	sources.untimed = true;
	add(SYMBOL_JITDUMP, 0x1000, 0x100, 100, 0, "first()");
	add(SYMBOL_JITDUMP, 0x1000, 0x100, 200, 0, "second()");
	names = finish(NULL);
	assert_name(names, 0x1000, 3, SYMBOL_JITDUMP, "second()");
	assert_int_equal(find(names, 0x1000, 3).from_ns, 0);
	assert_true(find(names, 0x1000, 3).until_ns == UINT64_MAX);
	symbol_provider_free(names);
}

static bool agree(const char *a, const char *b)
{
	bool one = jit_names_agree(a, strlen(a), b, strlen(b));

	assert_int_equal(one, jit_names_agree(b, strlen(b), a, strlen(a)));
	return one;
}

static void names_agree_except_for_type_arguments_and_tiers(void **state)
{
	(void)state;
	assert_true(agree("void [a] B::C(int32)[Tier0]", "void [a] B::C(int32)[Tier1]"));
	assert_true(agree("void [a] B`1[X]::C[Y](int32[])", "void [a] B`1::C(int32[])"));
	assert_true(
		agree("void [a] B`1[X[Y],Z]::C()", "void [a] B`1[System.__Canon]::C()[PreJIT]"));
	assert_true(agree("void [a] B::C()", "int32 [b] B::C()"));
	assert_true(agree("stub A<B>", "stub<12> C<D>"));
	assert_true(agree("stub A<B>", "stub C<D>"));
	assert_false(agree("void [a] B::C(int32)", "void [a] B::C(int64)"));
	assert_false(agree("void [a] B::C()", "stub C<D>"));
	assert_false(agree("void [a] B::C(int32[])", "void [a] B::C(int32)"));
	assert_false(agree("", "a"));
	assert_true(agree("", ""));
	assert_true(agree("a[", "a["));
}

/* Stubs known by their code alone hide no method of a perf map. Among stubs the memory's is
 * used. */
static void test_methods_go_before_stubs_by_code(void **state)
{
	struct symbol_provider *names;

	(void)state;
	begin();
	add(SYMBOL_MEMORY, 0x1000, 0x80, 0, 0, "stub ReportStubBlock<JumpStub>");
	add(SYMBOL_PERFMAP, 0x1020, 0x10, 0, 0, "void [a] B::C()[Tier0]");
	add(SYMBOL_PERFMAP, 0x1040, 0x10, 0, 0, "stub<3> GenerateLookupStub<GenerateLookupStub>");
	names = finish(NULL);
	assert_name(names, 0x1000, 5, SYMBOL_MEMORY, "stub ReportStubBlock<JumpStub>");
	assert_name(names, 0x1020, 5, SYMBOL_PERFMAP, "void [a] B::C()[Tier0]");
	assert_name(names, 0x1030, 5, SYMBOL_MEMORY, "stub ReportStubBlock<JumpStub>");
	assert_name(names, 0x1040, 5, SYMBOL_MEMORY, "stub ReportStubBlock<JumpStub>");
	symbol_provider_free(names);
}

static void add_il(enum symbol_source source, uint64_t start, uint32_t rid)
{
	const struct jit_il_module module = {.path = "/a.dll"};
	struct jit_il *il = jit_methods_il(sources.methods);
	uint32_t number = 0, map;

	if (!jit_il_modules(il))
		assert_int_equal(jit_il_add_module(il, &module, &number), 0);
	assert_int_equal(jit_il_add(il, number, rid, "0+0", &map), 0);
	assert_int_equal(jit_methods_set_il(sources.methods, source, start, map), 0);
}

/* A source with code that existed there before does not affect its lines. */
static void lines_belong_to_the_named_code(void **state)
{
	struct symbol_provider *names;
	struct jit_il_place place;

	(void)state;
	begin();
	add(SYMBOL_JITDUMP, 0x1000, 0x100, 100, 0, "void [a] B::New()[Tier0]");
	add(SYMBOL_MEMORY, 0x1000, 0x100, 0, 10, "void [a] B::Old()");
	add_il(SYMBOL_MEMORY, 0x1000, 1);
	add(SYMBOL_MEMORY, 0x1000, 0x100, 50, 200, "void [a] B::New()");
	add_il(SYMBOL_MEMORY, 0x1000, 2);
	sources.jitdump_stats.last_ns = 1000;
	names = finish(NULL);
	assert_name(names, 0x1000, 60, SYMBOL_MEMORY, "void [a] B::Old()");
	assert_int_equal(jit_names_il(names, 0x1000, 60, &place), 0);
	assert_int_equal(place.rid, 1);
	assert_name(names, 0x1000, 150, SYMBOL_JITDUMP, "void [a] B::New()[Tier0]");
	assert_int_equal(jit_names_il(names, 0x1000, 150, &place), -ENOENT);
	assert_int_equal(jit_names_il(names, 0x1000, 250, &place), 0);
	assert_int_equal(place.rid, 2);
	symbol_provider_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_perf_map_alone_is_unchanged),
		cmocka_unit_test(sources_with_times_win_and_the_perf_map_fills_gaps),
		cmocka_unit_test(the_source_with_more_detail_completes_a_name),
		cmocka_unit_test(conflicts_of_sources_with_times_are_counted),
		cmocka_unit_test(doubtful_lookups_are_counted),
		cmocka_unit_test(a_jitdump_that_stopped_early_comes_last),
		cmocka_unit_test(a_complete_jitdump_comes_first),
		cmocka_unit_test(without_a_common_clock_the_last_state_is_used),
		cmocka_unit_test(names_agree_except_for_type_arguments_and_tiers),
		cmocka_unit_test(test_methods_go_before_stubs_by_code),
		cmocka_unit_test(lines_belong_to_the_named_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
