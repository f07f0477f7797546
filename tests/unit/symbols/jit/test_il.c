#include "symbols/jit/il.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct jit_il_module module = {.path = "/app/a.dll"};

static void assert_text(struct il_point *points, size_t n, const char *text)
{
	struct outbuf out = outbuf_to(-1);

	jit_il_put(&out, points, n);
	outbuf_char(&out, 0);
	assert_int_equal(out.error, 0);
	assert_string_equal(out.data, text);
	outbuf_close(&out);
}

static void a_map_has_a_point_where_the_offset_changes(void **state)
{
	struct il_point plain[] = {{0, IL_POINTS_PROLOG},
				   {0, 0},
				   {12, 7},
				   {20, 7},
				   {43, 4},
				   {60, IL_POINTS_NONE},
				   {70, 9},
				   {80, IL_POINTS_EPILOG}};
	struct il_point mixed[] = {{9, 3}, {4, 0}, {30, 1}};
	struct il_point none[] = {{0, IL_POINTS_NONE}, {4, IL_POINTS_EPILOG}};

	(void)state;
	assert_text(plain, 8, "0+0,c+7,1f-3,1b+5");
	assert_text(mixed, 3, "4+0,5+3,15-2");
	assert_text(none, 2, "-");
	assert_text(none, 0, "-");
}

static void assert_place(const struct jit_il *il, uint32_t map, uint32_t native, uint32_t offset)
{
	struct jit_il_place place;

	assert_int_equal(jit_il_find(il, map, native, &place), 0);
	assert_int_equal(place.il, offset);
	assert_int_equal(place.rid, 17);
	assert_int_equal(place.module, 0);
}

static void a_place_belongs_to_the_last_point_before_it(void **state)
{
	struct jit_il_place place;
	struct jit_il *il;
	uint32_t number, map, empty;

	(void)state;
	assert_int_equal(jit_il_new(&il), 0);
	assert_int_equal(jit_il_add(il, 0, 17, "0+0", &map), -EINVAL);
	assert_int_equal(jit_il_add_module(il, &module, &number), 0);
	assert_int_equal(number, 0);
	assert_string_equal(jit_il_module(il, 0)->path, module.path);
	assert_int_equal(jit_il_add(il, 0, 0, "0+0", &map), -EINVAL);
	assert_int_equal(jit_il_add(il, 0, 17, "4+2,c+7,1f-3", &map), 0);
	assert_int_equal(jit_il_find(il, map, 3, &place), -ENOENT);
	assert_place(il, map, 4, 2);
	assert_place(il, map, 15, 2);
	assert_place(il, map, 16, 9);
	assert_place(il, map, 47, 6);
	assert_place(il, map, UINT32_MAX, 6);
	assert_int_equal(jit_il_add(il, 0, 17, "-", &empty), 0);
	assert_int_equal(jit_il_find(il, empty, 3, &place), -ENOENT);
	assert_int_equal(jit_il_maps(il), 2);
	jit_il_free(il);
}

static void other_texts_are_refused(void **state)
{
	static const char *const bad[] = {"",         "0",           "0+",         "+0",
					  "0+0,",     ",0+0",        "0+0 ",       "0*0",
					  "0+g",      "1-1",         "0+80000000", "ffffffff+0,1+0",
					  "0+0,,1+1", "000000001+0", "A+1",        "--"};
	struct jit_il *il;
	uint32_t number;

	(void)state;
	assert_int_equal(jit_il_new(&il), 0);
	assert_int_equal(jit_il_add_module(il, &module, &number), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(jit_il_add(il, 0, 1, bad[i], &number), -EBADMSG);
	assert_int_equal(jit_il_maps(il), 0);
	jit_il_free(il);
}

/* Each map is parsed once, whatever is looked up. All maps together are parsed in bounded time. */
static void points_have_a_limit(void **state)
{
	enum { MAPS = IL_POINTS_MAX / IL_POINTS_METHOD_MAX };
	char *text = malloc(4 * IL_POINTS_METHOD_MAX + 1);
	struct jit_il_place place;
	struct jit_il *il;
	uint32_t map;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < IL_POINTS_METHOD_MAX; i++)
		memcpy(text + 4 * i, i + 1 < IL_POINTS_METHOD_MAX ? "1+1," : "1+1",
		       5 - (i + 1 == IL_POINTS_METHOD_MAX));
	assert_int_equal(jit_il_new(&il), 0);
	assert_int_equal(jit_il_add_module(il, &module, &map), 0);
	for (int i = 0; i < MAPS; i++)
		assert_int_equal(jit_il_add(il, 0, 17, text, &map), 0);
	assert_int_equal(jit_il_add(il, 0, 17, "4+2", &map), 0);
	for (uint32_t again = 0; again < 2; again++) {
		for (uint32_t i = 0; i < MAPS; i++)
			for (uint32_t at = 1; at <= IL_POINTS_METHOD_MAX; at *= 16)
				assert_place(il, i, at, at);
		assert_int_equal(jit_il_find(il, MAPS, 4, &place), -ENOENT);
	}
	jit_il_free(il);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_has_a_point_where_the_offset_changes),
		cmocka_unit_test(a_place_belongs_to_the_last_point_before_it),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(points_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
