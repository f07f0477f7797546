#include "base/log.h"
#include "base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(void (*function)(char *), const char *from, const char *to)
{
	char text[64];

	snprintf(text, sizeof(text), "%s", from);
	function(text);
	assert_string_equal(text, to);
}

static void messages_keep_text_of_all_scripts(void **state)
{
	(void)state;
	expect(printable_message, "", "");
	expect(printable_message, "a b~", "a b~");
	expect(printable_message, "Größe 計算する \xf0\x9f\x98\x80 \xc2\xa0",
	       "Größe 計算する \xf0\x9f\x98\x80 \xc2\xa0");
}

static void messages_contain_no_terminal_control(void **state)
{
	(void)state;
	expect(printable_message, "\x1b[31m\n\t\x7f", "?[31m???");
	expect(printable_message, "a\xc2\x9b\x33\x31mb\xc2\x85", "a?31mb?");
	expect(printable_message,
	       "\x9b"
	       "31m",
	       "?31m");
	expect(printable_message, "\xc0\x9b \xe0\x80\x9b \xed\xa0\x80", "?? ??? ???");
	expect(printable_message, "cut \xe8\xa8", "cut ??");
}

static void tables_have_a_byte_a_column(void **state)
{
	(void)state;
	expect(printable_ascii, "a \x1b[m \xc3\xb6 ~\x7f", "a ?[m ?? ~?");
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
	assert_string_equal(logged[0], "e?");
	assert_string_equal(logged[1], "n?");
	for (size_t i = 2; i < nlogged; i++)
		assert_string_equal(logged[i], "w?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_keep_text_of_all_scripts),
		cmocka_unit_test(messages_contain_no_terminal_control),
		cmocka_unit_test(tables_have_a_byte_a_column),
		cmocka_unit_test(all_logged_text_is_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
