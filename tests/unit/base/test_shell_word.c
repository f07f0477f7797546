#include "base/shell_word.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *text, const char *word)
{
	char *got = shell_word(text);

	assert_non_null(got);
	assert_string_equal(got, word);
	free(got);
}

static void plain_words_stay(void **state)
{
	(void)state;
	expect("profilings/10-00-00_2025-01-01/", "profilings/10-00-00_2025-01-01/");
	expect("a@b%c+d=e:f,g", "a@b%c+d=e:f,g");
}

static void special_characters_are_quoted(void **state)
{
	(void)state;
	expect("", "''");
	expect("my dir", "'my dir'");
	expect("a'b", "'a'\\''b'");
	expect("$(reboot)`;&|<>*?~#!\\\"", "'$(reboot)`;&|<>*?~#!\\\"'");
	expect("Größe", "'Größe'");
	expect("-o", "./-o");
	expect("- x", "./'- x'");
}

static void control_characters_are_escaped(void **state)
{
	(void)state;
	expect("a\x1b[2J\n'\\", "$'a\\033[2J\\012\\'\\\\'");
	expect("\xe8 \xc3\xb6", "$'\\350 \\303\\266'");
}

/* A shell turns each word back into the text. */
static void a_shell_reads_the_text_back(void **state)
{
	static const char *const texts[] = {"a b", "it's $HOME", "\x1b[2J\n\\'", "\xff\xc3\xb6 \t"};
	char back[64];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char *word = shell_word(texts[i]);

		assert_non_null(word);
		setenv("WORD", word, 1);
		free(word);
		FILE *f = popen("bash -c 'eval \"printf %s $WORD\"'", "r");

		assert_non_null(f);
		size_t n = fread(back, 1, sizeof(back) - 1, f);

		back[n] = 0;
		assert_int_equal(pclose(f), 0);
		assert_string_equal(back, texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_words_stay),
		cmocka_unit_test(special_characters_are_quoted),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(a_shell_reads_the_text_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
