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
	/* Line separator, right-to-left override, isolate; their neighbours stay. */
	expect_copy("\u2028\u202e\u2066", 64, "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6",
		    false);
	expect_copy("\u2027\u202f\u2065\u206a", 64, "\u2027\u202f\u2065\u206a", false);
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
		cmocka_unit_test(tables_have_a_byte_a_column),
		cmocka_unit_test(all_logged_text_is_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
