#include "symbols/names/demangle.h"
#include "symbols/names/native_name.h"

#include "elf/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Write a pack expansion without a pack: "levels" types, each of which has the one before twice. */
static void put_doubled(FILE *f, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	fputs("_Z1fIDp1AI", f);
	for (int i = 1; i < levels; i++)
		fputs("S0_I", f);
	fputs("iiE", f);
	for (int i = 1; i < levels; i++) {
		fputc('S', f);
		if (i >= 36)
			fputc(digits[i / 36], f);
		fprintf(f, "%c_E", digits[i % 36]);
	}
	fputs("Evv", f);
}

/* Write a conversion to a template: each level is read once as arguments, and once as a pack. */
static void put_conversion(FILE *f, int levels)
{
	fputs("_ZN1AcvT_I", f);
	for (int i = 0; i < levels; i++)
		fputs("T_I", f);
	fputc('i', f);
	for (int i = 0; i < levels; i++)
		fputc('E', f);
	fputs("EEv", f);
}

/* Without a limit, each of these names takes years. */
static void names_that_take_too_long_are_unchanged(void **state)
{
	char name[1024];
	bool refused = false;

	(void)state;
	elf_budget_reset_work();
	for (int i = 0; i < 100 && !refused; i++) {
		FILE *f = fmemopen(name, sizeof(name), "w");

		assert_non_null(f);
		(i % 2 ? put_conversion : put_doubled)(f, 60);
		fclose(f);
		assert_perf(name, NULL);
		refused = !elf_budget_work(0);
	}
	assert_true(refused);
	elf_budget_reset_work();
	while (elf_budget_work(0))
		elf_budget_worked(UINT64_MAX);
	assert_perf("_ZNSt6vectorIN3app4NodeESaIS1_EE17_M_realloc_insertIJRKS1_EEEvN9__gnu_cxx17__"
		    "normal_iteratorIPS1_S3_EEDpOT_",
		    NULL);
	assert_perf("_ZNSt6vectorIN3app4NodeESaIS1_EE17_M_realloc_insertERKS1_RKS1_RKS1_RKS1_",
		    "std::vector<app::Node, std::allocator<app::Node> >::_M_realloc_insert");
	elf_budget_reset_work();
	assert_perf("_ZNSt6vectorIN3app4NodeESaIS1_EE17_M_realloc_insertIJRKS1_EEEvN9__gnu_cxx17__"
		    "normal_iteratorIPS1_S3_EEDpOT_",
		    "std::vector<app::Node, std::allocator<app::Node> "
		    ">::_M_realloc_insert<app::Node const&>");
}

/* Demangles a name that the library reads in time; then it writes text. Returns the CPU time. */
static clock_t time_doubled(int levels)
{
	char name[1024];
	FILE *f = fmemopen(name, sizeof(name), "w");
	uint64_t made_bytes = 0;

	assert_non_null(f);
	put_doubled(f, levels);
	fclose(f);
	clock_t took = clock();

	free(demangle_perf_counted(name, &made_bytes));
	took = clock() - took;
	assert_true(made_bytes > 0);
	return took;
}

/* Each ends in time, but there can be many. */
static void names_that_take_long_are_limited_together(void **state)
{
	const clock_t end = clock() + 20 * CLOCKS_PER_SEC;
	int levels = 12;

	(void)state;
	elf_budget_reset_work();
	/* Each level doubles the time, so the name takes 2 to 6 ms also in slow builds. */
	while (time_doubled(levels) < CLOCKS_PER_SEC / 400)
		levels++;
	while (elf_budget_work(0) && clock() < end)
		time_doubled(levels);
	assert_false(elf_budget_work(0));
	elf_budget_reset_work();
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
		cmocka_unit_test(names_that_take_too_long_are_unchanged),
		cmocka_unit_test(names_that_take_long_are_limited_together),
		cmocka_unit_test(memory_of_expanded_text_is_counted),
		cmocka_unit_test(native_names_have_two_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
