#include "dotnet/eventpipe/method_name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_becomes(const char *signature, const char *want)
{
	struct outbuf out = outbuf_to(-1);

	assert_int_equal(method_name_signature(signature, strlen(signature), "[A] T::M", 8, &out),
			 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, want);
	outbuf_close(&out);
}

static void signatures_of_events_take_the_form_of_the_perf_map(void **state)
{
	(void)state;
	assert_becomes("void  ()", "void [A] T::M()");
	assert_becomes("instance void  (int32,class System.String)",
		       "instance void [A] T::M(int32,string)");
	assert_becomes(
		"class System.Object  (unsigned int8,unsigned int16,unsigned int32,unsigned "
		"int64,unsigned int,int,wchar,refany)",
		"object [A] T::M(uint8,uint16,uint32,uint64,native uint,native int,char,typedref)");
	assert_becomes("instance generic !!0  (!0,!1&,!!12[])",
		       "instance !!0 [A] T::M(!0,!1&,!!12[])");
	assert_becomes(
		"value class System.Span`1<unsigned int8>  (class A`2<class System.String[],value "
		"class B<int32>>*)",
		"valuetype System.Span`1<uint8> [A] T::M(class A`2<string[],valuetype B<int32>>*)");
	assert_becomes("float64[,]  (float32[][,,]&)",
		       "float64[0...,0...] [A] T::M(float32[][0...,0...,0...]&)");
	assert_becomes("void  (class P+<>c__DisplayClass0_0,class <Module>,class "
		       "N.<>f__AnonymousType0`1<bool>)",
		       "void [A] T::M(class P+<>c__DisplayClass0_0,class <Module>,class "
		       "N.<>f__AnonymousType0`1<bool>)");
	assert_becomes(
		"required_modifier System.Runtime.InteropServices.InAttribute value class G&  ()",
		"valuetype G& modreq(System.Runtime.InteropServices.InAttribute) [A] T::M()");
	assert_becomes("vararg void  (int32,...)", "vararg void [A] T::M(int32,...)");
	assert_becomes("class System.StringComparer  (class System.ObjectPool)",
		       "class System.StringComparer [A] T::M(class System.ObjectPool)");
	assert_becomes("pMT: 0x7fc970dfd3a8  (pMT: 0x7fc96fa77f70<class System.Object>)",
		       "? /* MT: 0x7fc970dfd3a8 */ [A] T::M(? /* MT: 0x7fc96fa77f70 */<object>)");
}

static void text_without_a_signature_is_unchanged(void **state)
{
	static const char *const bad[] = {"",
					  "void",
					  "void ()",
					  "void  (",
					  "void  (int32",
					  "void  (int32,)",
					  "void  ()x",
					  "class   ()",
					  "void  (fnptr ",
					  "void  (!)",
					  "void  (class A<int32)"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct outbuf out = outbuf_to(-1);

		assert_int_equal(method_name_signature(bad[i], strlen(bad[i]), "N", 1, &out),
				 -EBADMSG);
		assert_int_equal(out.len, 1 + strlen(bad[i]));
		assert_memory_equal(out.data + 1, bad[i], strlen(bad[i]));
		outbuf_close(&out);
	}
}

static void depth_has_a_limit(void **state)
{
	struct outbuf text = outbuf_to(-1), out = outbuf_to(-1);

	(void)state;
	outbuf_str(&text, "void  (");
	for (int i = 0; i < 100000; i++)
		outbuf_str(&text, "class A<");
	assert_int_equal(method_name_signature(text.data, text.len, "N", 1, &out), -EBADMSG);
	outbuf_close(&out);
	outbuf_close(&text);
}

static void tiers_have_the_names_of_the_perf_map(void **state)
{
	(void)state;
	assert_string_equal(method_name_tier(METHOD_JITTED), "Unknown");
	assert_string_equal(method_name_tier(METHOD_JITTED | 3u << 7), "QuickJitted");
	assert_string_equal(method_name_tier(METHOD_JITTED | METHOD_DYNAMIC | 2u << 7),
			    "Optimized");
	assert_string_equal(method_name_tier(METHOD_JITTED | 7u << 7 | 1u << 28),
			    "InstrumentedTierOptimized");
	assert_string_equal(method_name_tier(2u << 7), "PreJIT");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(signatures_of_events_take_the_form_of_the_perf_map),
		cmocka_unit_test(text_without_a_signature_is_unchanged),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(tiers_have_the_names_of_the_perf_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
