#include "symbols/names/demangle.h"
#include "symbols/names/native_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_perf(const char *raw, const char *expected)
{
	char *text = demangle_perf(raw);

	if (expected)
		assert_non_null(text);
	else
		assert_null(text);
	if (expected)
		assert_string_equal(text, expected);
	free(text);
}

/* Expectations are what perf 6.1 printed; for kinds not seen with perf, what its rules give. */
static void names_read_as_in_perf_script(void **state)
{
	(void)state;
	assert_perf("main", NULL);
	assert_perf("_start", NULL);
	assert_perf("_Z", NULL);
	assert_perf("_ZNK2my3BoxIdE4spinERKSt6vectorIdSaIdEE", "my::Box<double>::spin");
	assert_perf("_ZNK2my3BoxIdEcvdEv", "my::Box<double>::operator double");
	assert_perf("_ZNK12_GLOBAL__N_14AnonclEd", "(anonymous namespace)::Anon::operator()");
	assert_perf("_ZNSt17_Function_handlerIFddEZ4mainEUldE_E9_M_invokeERKSt9_Any_dataOd",
		    "std::_Function_handler<double (double), main::{lambda(double)#1}>::_M_invoke");
	assert_perf(
		"_ZStplIcSt11char_traitsIcESaIcEENSt7__cxx1112basic_stringIT_T0_T1_EEPKS5_RKS8_",
		"std::operator+<char, std::char_traits<char>, std::allocator<char> >");
	assert_perf("_ZSt25__throw_bad_function_callv@plt", "std::__throw_bad_function_call@plt");
	assert_perf("sqrt@plt", NULL);
	assert_perf("_ZN3fooEv.cold", "foo");
	assert_perf("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	assert_perf("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	assert_perf("camlStdlib__List__map_12", "Stdlib.List.map_12");
	assert_perf("camlFoo__$3d$3e_1$", "Foo.=>_1$");
	assert_perf("camlot", NULL);
}

static void full_names_have_parameters(void **state)
{
	char *text = demangle_full("_ZNK2my3BoxIdE4spinERKSt6vectorIdSaIdEE");

	(void)state;
	assert_string_equal(
		text,
		"my::Box<double>::spin(std::vector<double, std::allocator<double> > const&) const");
	free(text);
}

static void monstrous_names_are_unchanged(void **state)
{
	char *name = malloc(DEMANGLE_NAME_MAX + 16);

	(void)state;
	assert_non_null(name);
	memset(name, 'P', DEMANGLE_NAME_MAX + 15);
	memcpy(name, "_Z1f", 4);
	name[DEMANGLE_NAME_MAX + 15] = 0;
	assert_perf(name, NULL);
	name[DEMANGLE_NAME_MAX - 1] = 0;
	char *text = demangle_full(
		name); /* nested too deep for the demangler: only a crash would be a failure */

	free(text);
	free(name);
}

static void memory_of_expanded_text_is_counted(void **state)
{
	uint64_t made_bytes = 7;
	char *text = demangle_perf_counted("_ZN3app1fEv", &made_bytes);

	(void)state;
	assert_string_equal(text, "app::f");
	assert_int_equal(made_bytes, 7 + strlen("app::f"));
	free(text);
	assert_null(demangle_perf_counted("main", &made_bytes));
	assert_int_equal(made_bytes, 7 + strlen("app::f"));
}

static void native_names_have_two_forms(void **state)
{
	struct outbuf o = outbuf_to(-1);
	const char *raw = "_ZN2my3BoxINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEE4spinEi";

	(void)state;
	assert_int_equal(native_name_perf(raw, strlen(raw), &o), 0);
	outbuf_char(&o, 0);
	assert_string_equal(o.data, "my::Box<std::__cxx11::basic_string<char, "
				    "std::char_traits<char>, std::allocator<char> > >::spin");
	o.len = 0;
	assert_int_equal(native_name_full(raw, strlen(raw), &o), 0);
	outbuf_char(&o, 0);
	assert_string_equal(o.data, "my::Box<std::string>::spin");
	outbuf_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_read_as_in_perf_script),
		cmocka_unit_test(full_names_have_parameters),
		cmocka_unit_test(monstrous_names_are_unchanged),
		cmocka_unit_test(memory_of_expanded_text_is_counted),
		cmocka_unit_test(native_names_have_two_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
