#include "dotnet/eventpipe/method_name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
	assert_becomes("void  (fnptr void(class System.Object)&,fnptr unmanaged cdecl int32())",
		       "void [A] T::M(method void *(object)&,method unmanaged cdecl int32 *())");
	assert_becomes("pMT: 0x7fc970dfd3a8  (pMT: 0x7fc96fa77f70<class System.Object>)",
		       "? /* MT: 0x7fc970dfd3a8 */ [A] T::M(? /* MT: 0x7fc96fa77f70 */<object>)");
}

static void assert_splits(const char *raw, const char *want)
{
	struct outbuf out = outbuf_to(-1);
	struct method_name_parts parts;
	char text[512];

	assert_int_equal(method_name_split(raw, strlen(raw), &parts, &out), 0);
	outbuf_char(&out, 0);
	snprintf(text, sizeof(text), "%.*s|%.*s|%.*s|%s", (int)parts.assembly_len, parts.assembly,
		 (int)parts.type_len, parts.type, (int)parts.name_len, parts.name, out.data);
	assert_string_equal(text, want);
	outbuf_close(&out);
}

static void raw_names_are_split_into_the_texts_of_an_event(void **state)
{
	(void)state;
	assert_splits("void [A] T::M()", "A|T|M|void  ()");
	assert_splits(
		"instance void [A.B] N.T`1[System.__Canon,N.U+V]::.ctor(int32,string)[PreJIT]",
		"A.B|N.T`1[System.__Canon,N.U+V]|.ctor|instance void  (int32,class "
		"System.String)");
	assert_splits(
		"object [A] T::M(uint8,uint16,uint32,uint64,native uint,native "
		"int,char,typedref,bool,float32,float64,int8,int16,int64)[Optimized]",
		"A|T|M|class System.Object  (unsigned int8,unsigned int16,unsigned "
		"int32,unsigned int64,unsigned int,int,wchar,refany,bool,float32,float64,int8,"
		"int16,int64)");
	assert_splits("instance !!0 [A] T::M(!0,!1&,!!12[])",
		      "A|T|M|instance !!0  (!0,!1&,!!12[])");
	assert_splits("valuetype [System.Runtime]System.Span`1<uint8> [A] "
		      "T::M(class [B]A`2<string[],valuetype N.O/B<int32>>*)",
		      "A|T|M|value class System.Span`1<unsigned int8>  (class A`2<class "
		      "System.String[],value class B<int32>>*)");
	assert_splits(
		"float64[0...,0...] [A] T::M(float32[][0...,0...,0...]&,int32[...],int32[3,4])",
		"A|T|M|float64[,]  (float32[][,,]&,int32[],int32[,])");
	assert_splits("void [A] T::M(class P/<>c__DisplayClass0_0,valuetype T/<<M>b__0>d,class "
		      "N.<>f__AnonymousType0`1<bool>,class <Module>)",
		      "A|T|M|void  (class <>c__DisplayClass0_0,value class <<M>b__0>d,class "
		      "N.<>f__AnonymousType0`1<bool>,class <Module>)");
	assert_splits(
		"valuetype G& modreq([R]S.InAttribute) [A] T::M(int32 modopt(S.A)& modreq(S.B))",
		"A|T|M|required_modifier S.InAttribute value class G&  (required_modifier S.B "
		"optional_modifier S.A int32&)");
	assert_splits("vararg void [A] T::M(int32,...)", "A|T|M|vararg void  (int32,...)");
	assert_splits("void [A] T::M(method void *(object)&,method unmanaged native int "
		      "*(int32,method unmanaged cdecl void *()))",
		      "A|T|M|void  (fnptr void(class System.Object)&,fnptr int(int32,fnptr "
		      "unmanaged cdecl void()))");
	assert_splits("void [dynamic] dynamicClass::IL_STUB(object,N.T /* MT: 0x7fc970dfd3a8 */)",
		      "dynamic|dynamicClass|IL_STUB|void  (class System.Object,pMT: "
		      "0x7fc970dfd3a8)");
	assert_splits("void [A] T::a (b) of (c)(int32)", "A|T|a (b) of (c)|void  (int32)");
	assert_splits("void [A] T::System.IDictionary<K,V>.get_Keys()[QuickJitted]",
		      "A|T|System.IDictionary<K,V>.get_Keys|void  ()");
}

/* Both ways together leave out scopes and outer classes. */
static void a_split_name_becomes_the_same_name_again(void **state)
{
	static const char *const names[] = {
		"instance !!0 [A] T::M(!0,!1&,!!12[])",
		"valuetype System.Span`1<uint8> [A] T::M(class A`2<string[],valuetype B<int32>>*)",
		"object [A] T::M(method void *(object)&,method unmanaged cdecl int32 *())",
		"valuetype G& modreq(S.InAttribute) [A] T::M(int32& modopt(S.A) modreq(S.B))",
		"native uint [A] T::M(float64[0...,0...],native int*)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct outbuf signature = outbuf_to(-1), out = outbuf_to(-1);
		struct method_name_parts parts;

		assert_int_equal(method_name_split(names[i], strlen(names[i]), &parts, &signature),
				 0);
		assert_int_equal(
			method_name_signature(signature.data, signature.len, "[A] T::M", 8, &out),
			0);
		outbuf_char(&out, 0);
		assert_string_equal(out.data, names[i]);
		outbuf_close(&signature);
		outbuf_close(&out);
	}
}

static void names_that_are_no_methods_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"stub ReportStubBlock<JumpStub>",
		"0x1234",
		"void",
		"void ",
		"void [A",
		"void [A] ",
		"void [A] T",
		"void [A] T::M",
		"void [A] T::M(",
		"void [A] T::M(int32",
		"void [A] T::M(int32,)",
		"void [A] T::M(int33)",
		"void [A] T::M()x",
		"void [A] T::M()[x",
		"void [A] T::M(class )",
		"void [A] T::M(class [A)",
		"void [A] T::M(int32[)",
		"void [A] T::M(int32 modreq(X)",
		"void [A] T::M(method void)",
		"void [A] T::M(N.T)",
		"void [A] T::M(N.T /* MT: 0x1)",
		"voidx [A] T::M()",
		"void [A] T::((((((((((((((((((((((((((((((((()",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct outbuf out = outbuf_to(-1);
		struct method_name_parts parts;

		outbuf_str(&out, "x");
		if (!method_name_split(bad[i], strlen(bad[i]), &parts, &out))
			fail_msg("%s", bad[i]);
		assert_int_equal(out.len, 1);
		outbuf_close(&out);
	}
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
	out.len = text.len = 0;
	outbuf_str(&text, "void [A] T::M(");
	for (int i = 0; i < 100000; i++)
		outbuf_str(&text, "class A<");
	struct method_name_parts parts;

	assert_int_equal(method_name_split(text.data, text.len, &parts, &out), -EBADMSG);
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
		cmocka_unit_test(raw_names_are_split_into_the_texts_of_an_event),
		cmocka_unit_test(a_split_name_becomes_the_same_name_again),
		cmocka_unit_test(names_that_are_no_methods_are_refused),
		cmocka_unit_test(text_without_a_signature_is_unchanged),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(tiers_have_the_names_of_the_perf_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
