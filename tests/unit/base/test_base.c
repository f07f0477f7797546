#include "base/arena.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/outbuf.h"
#include "base/reader.h"
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void arena_memory_is_zeroed_and_aligned(void **state)
{
	struct arena a = {0};

	(void)state;
	for (size_t size = 1; size < 200000; size = size * 3 + 1) {
		unsigned char *p = arena_alloc(&a, size);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 8, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, size);
	}
	assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
	arena_free(&a);
	assert_int_equal(a.total_bytes, 0);
}

static void intern_gives_equal_texts_equal_ids(void **state)
{
	struct intern t = {0};
	char buf[16];
	uint32_t id;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 5000; i++) {
			int n = snprintf(buf, sizeof(buf), "name%d", i);

			assert_int_equal(intern_put(&t, buf, (size_t)n, &id), 0);
			assert_int_equal(id, i);
			assert_string_equal(intern_text(&t, id), buf);
		}
	}
	assert_int_equal(intern_find(&t, "name", 4, &id), -ENOENT);
	assert_int_equal(intern_put(&t, "", 0, &id), 0);
	assert_int_equal(id, 5000);
	assert_int_equal(intern_put(&t, buf, INTERN_TEXT_MAX + 1, &id), -E2BIG);
	intern_free(&t);
}

static void hashmap_keeps_every_key(void **state)
{
	struct hashmap m = {0};

	(void)state;
	for (uint64_t k = 0; k < 10000; k++)
		assert_int_equal(hashmap_put(&m, k << 20, (uint32_t)k), 0);
	assert_int_equal(hashmap_put(&m, 5 << 20, 77), 0);
	assert_int_equal(m.len, 10000);
	for (uint64_t k = 0; k < 10000; k++)
		assert_int_equal(*hashmap_get(&m, k << 20), k == 5 ? 77 : k);
	assert_null(hashmap_get(&m, 3));
	hashmap_free(&m);
}

/* Keys whose places collide, removed and added in many orders. */
static void hashmap_forgets_only_removed_keys(void **state)
{
	enum { KEYS = 300 };
	struct hashmap m = {0};
	bool there[KEYS] = {0};
	uint32_t seed = 1;
	size_t n = 0;

	(void)state;
	hashmap_remove(&m, 1);
	for (int i = 0; i < 100000; i++) {
		uint32_t k = (seed = seed * 1664525u + 1013904223u) >> 8;
		bool add = k / KEYS % 2;

		k %= KEYS;
		n += (size_t)(add && !there[k]);
		n -= (size_t)(!add && there[k]);
		there[k] = add;
		if (add)
			assert_int_equal(hashmap_put(&m, k, k), 0);
		else
			hashmap_remove(&m, k);
		assert_int_equal(m.len, n);
		for (uint32_t j = i % 16; j < KEYS; j += 16) {
			const uint32_t *value = hashmap_get(&m, j);

			assert_true(there[j] ? value && *value == j : !value);
		}
	}
	hashmap_free(&m);
}

static void reader_never_passes_its_end(void **state)
{
	const unsigned char data[] = {1, 2, 0, 3, 0, 0, 0, 'h', 'i', 0, 'x'};
	struct reader r = reader_of(data, sizeof(data));
	size_t len;

	(void)state;
	assert_int_equal(reader_u8(&r), 1);
	assert_int_equal(reader_u16(&r), 2);
	assert_int_equal(reader_u32(&r), 3);
	assert_string_equal(reader_cstr(&r, 10, &len), "hi");
	assert_int_equal(len, 2);
	assert_null(reader_cstr(&r, 10, &len));
	assert_true(r.failed);
	assert_int_equal(r.fail_at, 10);
	assert_int_equal(reader_u8(&r), 0);
	r = reader_of(data, sizeof(data));
	reader_skip(&r, SIZE_MAX);
	assert_true(r.failed);
}

static void outbuf_escapes_characters_forbidden_in_json(void **state)
{
	struct outbuf o = outbuf_to(-1);

	(void)state;
	outbuf_json(&o, "\"\\\n\xc0\x80", 5);
	outbuf_char(&o, 0);
	assert_string_equal(o.data, "\\\"\\\\\\u000a\\ufffd\\ufffd");
	o.len = 0;
	outbuf_json(&o, "\u200f\U000e0041", 7);
	outbuf_char(&o, 0);
	assert_string_equal(o.data, "\\u200f\\udb40\\udc41");
	o.len = 0;
	outbuf_u64(&o, UINT64_MAX);
	outbuf_char(&o, ' ');
	outbuf_hex(&o, 0xabcdef);
	outbuf_char(&o, 0);
	assert_string_equal(o.data, "18446744073709551615 abcdef");
	assert_int_equal(outbuf_close(&o), 0);
}

static void outbuf_remembers_a_full_device(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct outbuf o = outbuf_to(fileno(full));

	(void)state;
	for (int i = 0; i < 100000; i++)
		outbuf_str(&o, "some text\n");
	assert_int_equal(outbuf_close(&o), -ENOSPC);
	fclose(full);
}

static void seconds_have_four_digits(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} table[] = {
		{539312345678, "539.3"},       {3600000000000, "3600.0"}, {53931234567, "53.93"},
		{5393123456, "5.393"},         {539312345, "0.5393"},     {53931234, "0.05393"},
		{5393123, "0.005393"},         {1000, "0.000001"},        {0, "0.000000"},
		{UINT64_MAX, "18446744073.7"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(text, sizeof(text), "%.*f", CLOCK_SECONDS(table[i].ns));
		assert_string_equal(text, table[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
		cmocka_unit_test(intern_gives_equal_texts_equal_ids),
		cmocka_unit_test(hashmap_keeps_every_key),
		cmocka_unit_test(hashmap_forgets_only_removed_keys),
		cmocka_unit_test(reader_never_passes_its_end),
		cmocka_unit_test(outbuf_escapes_characters_forbidden_in_json),
		cmocka_unit_test(outbuf_remembers_a_full_device),
		cmocka_unit_test(seconds_have_four_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
