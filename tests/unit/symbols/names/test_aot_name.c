#include "symbols/names/aot_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void check(const char *raw, const char *expected)
{
	struct outbuf out = outbuf_to(-1);

	assert_int_equal(aot_name_full(raw, strlen(raw), "shop.app", &out), 0);
	outbuf_char(&out, '\0');
	assert_string_equal(out.data, expected);
	outbuf_close(&out);
}

/* Symbols of programs that .NET 8 compiled ahead of time. */
static void methods_read_as_written(void **state)
{
	(void)state;
	check("S_P_CoreLib_System_Threading_Thread__StartCallback",
	      "System.Threading.Thread.StartCallback");
	check("S_P_TypeLoader_Internal_TypeSystem_CanonBaseType__get_Context",
	      "Internal.TypeSystem.CanonBaseType.get_Context");
	check("S_P_CoreLib_Interop__GetIOException", "Interop.GetIOException");
	check("System_Linq_System_Linq_Enumerable__Sum_4<Int32__Int32>",
	      "System.Linq.Enumerable.Sum<Int32,Int32>");
	check("System_Console_Interop_Sys__IsATty", "Interop.Sys.IsATty");
	check("shop_app_Acme_Shop_P__Main", "Acme.Shop.P.Main");
	check("shop_app_Acme_Shop_Item_1<System___Canon>__Hash_1", "Acme.Shop.Item<__Canon>.Hash");
	check("String__Concat_5", "String.Concat");
	check("S_P_CoreLib_System_Threading_Thread___ctor_2", "System.Threading.Thread..ctor");
	check("S_P_CoreLib_System_AppContext___cctor", "System.AppContext..cctor");
	check("unbox_UInt64__ToString_2", "UInt64.ToString");
}

static void type_arguments_lose_their_namespaces(void **state)
{
	(void)state;
	check("S_P_CoreLib_System_Collections_Generic_Dictionary_2_Enumerator<S_P_CoreLib_System_"
	      "ReadOnlyMemory_1<Char>__System_Console_"
	      "System_ConsoleKeyInfo>__MoveNext",
	      "System.Collections.Generic.Dictionary.Enumerator<ReadOnlyMemory<Char>,"
	      "ConsoleKeyInfo>.MoveNext");
	check("<Boxed>S_P_CoreLib_System_Collections_Generic_KeyValuePair_2<System___Canon__System_"
	      "__Canon>__<unbox>S_P_CoreLib_System_"
	      "Collections_Generic_KeyValuePair_2__ToString",
	      "System.Collections.Generic.KeyValuePair<__Canon,__Canon>.ToString");
}

static void generated_code_has_the_name_of_its_method(void **state)
{
	(void)state;
	check("shop_app_Acme_P__RunAsync_d__0__MoveNext", "Acme.P.RunAsync() [async]");
	check("shop_app_Acme_P__Numbers_d__1__MoveNext", "Acme.P.Numbers() [state machine]");
	check("shop_app_Acme_P___c__DisplayClass2_0___Main_b__1", "Acme.P.Main.lambda1");
	check("shop_app_Program___Main___d__0__MoveNext", "Program.Main() [async]");
	check("shop_app_Acme_P___c___Main_b__2_0", "Acme.P.Main.lambda0");
}

static void other_symbols_are_unchanged(void **state)
{
	static const char *const odd[] = {
		"",  "main",    "RhpNewArray",      "__",     "a__",   "__x",    "<",
		">", "<Boxed>", "<Boxed>__<unbox>", "unbox_", "a<__b", "a>__b<", "_c___c___b__"};
	struct outbuf out = outbuf_to(-1);

	(void)state;
	check("RhpNewArray", "RhpNewArray");
	check("main", "main");
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		assert_int_equal(aot_name_full(odd[i], strlen(odd[i]), "", &out), 0);
	outbuf_close(&out);
}

/* Hostile symbols cannot make stack or time grow without bound. */
static void names_without_end_are_read_once(void **state)
{
	enum { PARTS = 100000 };
	static const char part[] = "System_A<B>";
	struct outbuf raw = outbuf_to(-1), out = outbuf_to(-1);

	(void)state;
	for (int i = 0; i < PARTS; i++)
		outbuf_str(&raw, part);
	outbuf_str(&raw, "__F");
	assert_int_equal(aot_name_full(raw.data, raw.len, "", &out), 0);
	assert_true(out.len > PARTS * strlen("A<B>") && out.len < 2 * raw.len);
	outbuf_close(&raw);
	outbuf_close(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_read_as_written),
		cmocka_unit_test(type_arguments_lose_their_namespaces),
		cmocka_unit_test(generated_code_has_the_name_of_its_method),
		cmocka_unit_test(other_symbols_are_unchanged),
		cmocka_unit_test(names_without_end_are_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
