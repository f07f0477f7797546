#include "symbols/names/native_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void check(int (*form)(const char *, size_t, struct outbuf *), const char *raw,
		  const char *expected)
{
	struct outbuf out = outbuf_to(-1);

	assert_int_equal(form(raw, strlen(raw), &out), 0);
	outbuf_char(&out, '\0');
	assert_string_equal(out.data, expected);
	outbuf_close(&out);
}

static void perf_form_has_neither_return_type_nor_parameters(void **state)
{
	(void)state;
	check(native_name_perf, "main", "main");
	check(native_name_perf, "_ZN3app4WorkIlE4spinERKSt6vectorIlSaIlEEi",
	      "app::Work<long>::spin");
	check(native_name_perf, "_ZN3foo3barIiEEvT_", "foo::bar<int>");
	check(native_name_perf, "_ZN1AclEi", "A::operator()");
	check(native_name_perf, "_ZN3fooIiEclEv.isra.0", "foo<int>::operator()");
	check(native_name_perf, "_Znwm@plt", "operator new@plt");
	check(native_name_perf, "_Znot_mangled", "_Znot_mangled");
}

static void full_form_has_no_noise(void **state)
{
	(void)state;
	check(native_name_full, "schedule", "schedule");
	check(native_name_full, "do_work.constprop.0.isra.0", "do_work");
	check(native_name_full, "do_work.cold", "do_work");
	check(native_name_full, "foo.bar", "foo.bar");
	check(native_name_full, "_ZN3app3eatERKSt6vectorIlSaIlEE", "app::eat");
	check(native_name_full, "_ZNSt6vectorIlSaIlEE9push_backERKl",
	      "std::vector<long>::push_back");
	check(native_name_full,
	      "_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiSt4lessIS5_"
	      "ESaISt4pairIKS5_iEEEixEOS5_",
	      "std::map<std::string, int, std::less<std::string>>::operator[]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_form_has_neither_return_type_nor_parameters),
		cmocka_unit_test(full_form_has_no_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
