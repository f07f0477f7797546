#include "symbols/symtab/kallsyms.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_name(struct symbol_provider *k, uint64_t addr, const char *name,
			const char *module)
{
	struct symbol s;

	if (!name) {
		assert_int_equal(symbol_provider_find(k, addr, 0, &s), -ENOENT);
		return;
	}
	assert_int_equal(symbol_provider_find(k, addr, 0, &s), 0);
	assert_string_equal(s.name, name);
	assert_int_equal(s.name_len, strlen(name));
	assert_int_equal(s.source, SYMBOL_KALLSYMS);
	assert_string_equal(kallsyms_module(k, addr), module);
}

static void the_kernel_and_its_modules_are_distinguished(void **state)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000000 T _text\n"
				   "ffffffff81000100 t do_work.isra.0\n"
				   "ffffffff81000200 W weak_work\r\n"
				   "ffffffff81000300 R a_table\n"
				   "ffffffff81000400 D data\n"
				   "ffffffff81000500 b bss\n"
				   "ffffffff81000510 A absolute\n"
				   "ffffffff81000520 t $x\n"
				   "ffffffff81000600 T last\n"
				   "ffffffffc0200000 t second\t[beta]\n"
				   "ffffffffc0100000 t first\t[alpha]\n"
				   "ffffffffc0100080 d things\t[alpha]\n";
	struct symbol_provider *k = NULL;
	const char *kernel = "[kernel.kallsyms]";

	(void)state;
	assert_int_equal(kallsyms_parse(text, sizeof(text) - 1, &k, NULL), 0);
	assert_name(k, 0xffffffff80ffffff, NULL, NULL);
	assert_name(k, 0xffffffff81000010, "_text",
		    kernel); /* the last of several at one address, as in perf */
	assert_name(k, 0xffffffff81000100, "do_work.isra.0", kernel);
	assert_name(k, 0xffffffff81000300, "weak_work",
		    kernel); /* perf skips types other than T, W, D, B */
	assert_name(k, 0xffffffff81000400, "data", kernel);
	assert_name(k, 0xffffffff81000530, "bss", kernel);
	assert_name(k, 0xffffffff81001fff, "last",
		    kernel); /* to the end of the page after its own */
	assert_name(k, 0xffffffff81002000, NULL, NULL);
	assert_name(k, 0xffffffffc0100000, "first", "[alpha]");
	assert_name(k, 0xffffffffc01fffff, "things", "[alpha]");
	assert_name(k, 0xffffffffc0200fff, "second", "[beta]");
	assert_name(k, 0xffffffffc0201000, NULL, NULL);
	assert_string_equal(kallsyms_module(k, 0xffffffffc0300000), kernel);
	symbol_provider_free(k);
}

static void hidden_addresses_differ_from_missing_ones(void **state)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t do_work\n";
	struct symbol_provider *k = NULL;
	struct parse_error err = {0};

	(void)state;
	assert_int_equal(kallsyms_parse(hidden, sizeof(hidden) - 1, &k, &err), -EACCES);
	assert_int_equal(err.code, -EACCES);
	assert_int_equal(kallsyms_parse("", 0, &k, &err), -EBADMSG);
	assert_int_equal(kallsyms_parse("hello\nworld T x\n", 16, &k, &err), -EBADMSG);
	assert_null(k);
}

static void damaged_lines_do_not_spoil_the_others(void **state)
{
	static const char text[] = "\n"
				   "ffffffff81000000\n"
				   "ffffffff81000000 T\n"
				   "ffffffff81000000 T \n"
				   "ffffffff810000001 T too_long\n"
				   "fffffffg81000000 T no_hex\n"
				   "ffffffff81000000TTTname\n"
				   "ffffffff81000000 T\0name\n"
				   "ffffffff81000000 \0 name\n"
				   "ffffffff81000010 t \t[module]\n"
				   "ffffffff81000020 t good\n"
				   "ffffffff81000040 t tab\t\n"
				   "ffffffff81000030 t end";
	struct symbol_provider *k = NULL;

	(void)state;
	assert_int_equal(kallsyms_parse(text, sizeof(text) - 1, &k, NULL), 0);
	assert_name(k, 0xffffffff81000000, NULL, NULL);
	assert_name(k, 0xffffffff81000020, "good", "[kernel.kallsyms]");
	assert_name(k, 0xffffffff81000030, "end", "[kernel.kallsyms]");
	assert_name(k, 0xffffffff81000040, "tab", "[kernel.kallsyms]");
	symbol_provider_free(k);
}

static void the_running_kernel_is_read_or_hidden(void **state)
{
	struct symbol_provider *k = NULL;
	struct parse_error err = {0};
	int error = kallsyms_load(&k, &err);

	(void)state;
	if (error) {
		assert_true(error == -EACCES || error == -ENOENT || error == -EPERM ||
			    error == -EBADMSG);
		return;
	}
	assert_non_null(k);
	symbol_provider_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_and_its_modules_are_distinguished),
		cmocka_unit_test(hidden_addresses_differ_from_missing_ones),
		cmocka_unit_test(damaged_lines_do_not_spoil_the_others),
		cmocka_unit_test(the_running_kernel_is_read_or_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
