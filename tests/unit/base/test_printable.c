#include "base/log.h"
#include "base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_copy(const char *from, size_t max, const char *to, bool cut)
{
	char text[256];
	bool was_cut = !cut;
	size_t n = printable_copy(from, strlen(from), max, text, &was_cut);

	assert_true(n <= max);
	text[n] = 0;
	assert_string_equal(text, to);
	assert_int_equal(was_cut, cut);
	if (!cut)
		assert_int_equal(printable_is(from, strlen(from)), !strcmp(from, to));
	assert_true(printable_is(text, n));
}

static void text_of_all_scripts_stays(void **state)
{
	(void)state;
	expect_copy("", 3, "", false);
	expect_copy("a b~", 4, "a b~", false);
	expect_copy("Größe 計算する \xf0\x9f\x98\x80 \xc2\xa0", 64,
		    "Größe 計算する \xf0\x9f\x98\x80 \xc2\xa0", false);
	expect_copy("\u2764\ufe0f \u2602\ufe0e \u1820\u180b \u00a9\ufe0f", 64,
		    "\u2764\ufe0f \u2602\ufe0e \u1820\u180b \u00a9\ufe0f", false);
	/* A flag of two symbols with a joiner. */
	expect_copy("\U0001f3f3\ufe0f\u200d\U0001f308", 64, "\U0001f3f3\ufe0f\u200d\U0001f308",
		    false);
}

static void copies_contain_no_terminal_control(void **state)
{
	(void)state;
	expect_copy("\x1b[31m\n\t\x7f", 64, "\\x1b[31m\\x0a\t\\x7f", false);
	expect_copy("a\xc2\x9b\x33\x31mb\xc2\x85", 64, "a\\xc2\\x9b31mb\\xc2\\x85", false);
	expect_copy("\x9b"
		    "31m",
		    64, "\\x9b31m", false);
	expect_copy("\xc0\x9b \xed\xa0\x80", 64, "\\xc0\\x9b \\xed\\xa0\\x80", false);
	expect_copy("cut \xe8\xa8", 64, "cut \\xe8\\xa8", false);
	/* Line separator, right-to-left override, isolate, marks without width; their neighbours
	 * stay. */
	expect_copy("\u2028\u202e\u2066", 64, "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6",
		    false);
	expect_copy("\u061c\u200f\u200b", 64, "\\xd8\\x9c\\xe2\\x80\\x8f\\xe2\\x80\\x8b", false);
	expect_copy("\ufeff\U000e0041", 64, "\\xef\\xbb\\xbf\\xf3\\xa0\\x81\\x81", false);
	/* Other characters that many fonts show as nothing, and noncharacters. */
	static const uint32_t ignored[] = {
		0x34f,   0x115f,  0x1160,  0x17b4,  0x17b5,  0x180b,  0x180f,  0x2065,  0x2800,
		0x3164,  0xfdd0,  0xfe0f,  0xffa0,  0xfff0,  0xfffe,  0xffff,  0x13430, 0x1343f,
		0x1bca0, 0x1d17a, 0x1fffe, 0xe0100, 0xe01ef, 0xe0fff, 0xeffff, 0x10ffff};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		assert_true(printable_is_hidden(ignored[i]));
	expect_copy("a\ufe00\U000e0100", 64, "a\\xef\\xb8\\x80\\xf3\\xa0\\x84\\x80", false);
	/* After text that they do not vary, or after one that was. */
	expect_copy("a\ufe0f1\ufe0e\u3042\ufe0f", 64,
		    "a\\xef\\xb8\\x8f1\\xef\\xb8\\x8e\u3042\\xef\\xb8\\x8f", false);
	/* Arrows and operators have no forms. */
	expect_copy("\u2211\ufe0e\u21d2\ufe0f", 64, "\u2211\\xef\\xb8\\x8e\u21d2\\xef\\xb8\\x8f",
		    false);
	expect_copy("\u2764\ufe0f\ufe0f\u2800\ufe0f", 64,
		    "\u2764\ufe0f\\xef\\xb8\\x8f\\xe2\\xa0\\x80\\xef\\xb8\\x8f", false);
	expect_copy("\u180b\u1820\u180e", 64, "\\xe1\\xa0\\x8b\u1820\\xe1\\xa0\\x8e", false);
	expect_copy("\u115e\u1161\u27ff\u2801\ufdcf\ufdf0\ufe10\ufffc\ufffd\U0001fffd", 64,
		    "\u115e\u1161\u27ff\u2801\ufdcf\ufdf0\ufe10\ufffc\ufffd\U0001fffd", false);
	expect_copy("\u2027\u202f\u200c\u200d\u2070", 64, "\u2027\u202f\u200c\u200d\u2070", false);
}

static void copies_are_cut_at_whole_characters(void **state)
{
	(void)state;
	expect_copy("abcdef", 6, "abcdef", false);
	expect_copy("abcdefg", 6, "abc...", true);
	expect_copy("計算する", 12, "計算する", false);
	expect_copy("計算する", 11, "計算...", true);
	expect_copy("計算", 5, "...", true);
	/* An escape is whole or not there. */
	expect_copy("ab\x1b"
		    "cd",
		    8, "ab\\x1bcd", false);
	expect_copy("ab\x1b"
		    "cdef",
		    8, "ab...", true);
	expect_copy("\x1b", 3, "...", true);
}

static void cut_copies_stay_different(void **state)
{
	char text[24] = {0};
	bool cut;

	(void)state;
	assert_int_equal(printable_copy_distinct("a\x1b", 2, 11, text, &cut), 5);
	assert_memory_equal(text, "a\\x1b", 6);
	assert_false(cut);
	/* Nothing is written behind the text. */
	assert_int_equal(printable_copy_distinct("one long text", 13, 12, text, &cut), 12);
	assert_string_equal(text, "o...f7e11e7a");
	assert_true(cut);
	assert_int_equal(printable_copy_distinct("one long test", 13, 12, text, &cut), 12);
	assert_string_equal(text, "o...f7a5e9b1");
}

static void tables_have_a_byte_a_column(void **state)
{
	(void)state;
	char text[] = "a \x1b[m \xc3\xb6 ~\x7f";

	printable_ascii(text);
	assert_string_equal(text, "a ?[m ?? ~?");
}

static char logged[8][64];
static size_t nlogged;

static void listen(enum log_level level, const char *text, unsigned long repeats)
{
	(void)level, (void)repeats;
	snprintf(logged[nlogged++ % 8], sizeof(logged[0]), "%s", text);
}

static void all_logged_text_is_printable(void **state)
{
	(void)state;
	log_set_sink(listen);
	log_error("%s", "e\x1b");
	log_note("%s", "n\n");
	for (int i = 0; i < LOG_WARN_SHOWN + 1; i++)
		log_warn("w%s", "\xc2\x9b");
	log_summarize();
	log_set_sink(NULL);
	assert_int_equal(nlogged, 2 + LOG_WARN_SHOWN + 1);
	assert_string_equal(logged[0], "e\\x1b");
	assert_string_equal(logged[1], "n\\x0a");
	for (size_t i = 2; i < nlogged; i++)
		assert_string_equal(logged[i], "w\\xc2\\x9b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_of_all_scripts_stays),
		cmocka_unit_test(copies_contain_no_terminal_control),
		cmocka_unit_test(copies_are_cut_at_whole_characters),
		cmocka_unit_test(cut_copies_stay_different),
		cmocka_unit_test(tables_have_a_byte_a_column),
		cmocka_unit_test(all_logged_text_is_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
