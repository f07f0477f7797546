#include "symbols/names/managed_name.h"
#include "symbols/names/managed_type.h"

#include "tests/unit/cpu_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void assert_part(const char *text, struct managed_name_part part, const char *expected)
{
	assert_int_equal(part.len, strlen(expected));
	assert_memory_equal(text + part.at, expected, part.len);
}

static void assert_full(const char *raw, const char *expected, const char *module, const char *tier)
{
	/* An exact copy without a NUL, so that an overread is visible. */
	size_t len = strlen(raw);
	char *text = malloc(len ? len : 1);
	struct outbuf out = outbuf_to(-1);
	struct managed_name_part tier_part, module_part;

	assert_non_null(text);
	memcpy(text, raw, len);
	enum managed_name_kind kind = managed_name_full(text, len, &out, &tier_part, &module_part);

	assert_int_equal(out.error, 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, expected);
	assert_int_equal(kind == MANAGED_NAME_METHOD, *module != 0);
	assert_part(text, module_part, module);
	assert_part(text, tier_part, tier);
	outbuf_close(&out);
	free(text);
}

/* Lines that .NET 10.0 wrote for a program made for this purpose; one for each construct. */
#define Q "[QuickJitted]"
static const char *const program[][2] = {
	{"int32 [Names] Acme.Shop.Ext::Twice(int32)" Q, "Acme.Shop.Ext.Twice(int32)"},
	{"!!0 [Names] Acme.Shop.Ext::Gen(!!0)" Q, "Acme.Shop.Ext.Gen(!!0)"},
	/* constructors, properties, events, operators, finalizer */
	{"instance void [Names] Acme.Shop.Item::.ctor()" Q, "Acme.Shop.Item..ctor()"},
	{"void [Names] Acme.Shop.Item::.cctor()" Q, "Acme.Shop.Item..cctor()"},
	{"instance void [Names] Acme.Shop.Item::Finalize()" Q, "Acme.Shop.Item.Finalize()"},
	{"instance void [Names] Acme.Shop.Item::set_Item(int32,string,int32)" Q,
	 "Acme.Shop.Item.set_Item(int32,string,int32)"},
	{"instance void [Names] Acme.Shop.Item::add_Sold(class "
	 "[System.Runtime]System.EventHandler`1<int32>)" Q,
	 "Acme.Shop.Item.add_Sold(EventHandler<int32>)"},
	{"valuetype Acme.Shop.Point [Names] Acme.Shop.Point::op_Addition(valuetype "
	 "Acme.Shop.Point,valuetype "
	 "Acme.Shop.Point)" Q,
	 "Acme.Shop.Point.op_Addition(Point,Point)"},
	{"instance void modreq([System.Runtime]System.Runtime.CompilerServices.IsExternalInit) "
	 "[Names] "
	 "Acme.Shop.Rec::set_A(int32)" Q,
	 "Acme.Shop.Rec.set_A(int32)"},
	{"instance class Acme.Shop.Rec [Names] Acme.Shop.Rec::<Clone>$()" Q,
	 "Acme.Shop.Rec.Clone()"},
	/* by-refs, pointers, arrays, function pointers */
	{"int32& modreq([System.Runtime]System.Runtime.InteropServices.InAttribute) [Names] "
	 "Acme.Shop.Item::RefRo(int32&)" Q,
	 "Acme.Shop.Item.RefRo(int32&)"},
	{"int32 [Names] Acme.Shop.Item::Ptr(int32*,void**,method void *(int32),uint8*[],native "
	 "int,native "
	 "uint,typedref)" Q,
	 "Acme.Shop.Item.Ptr(int32*,void**,method void *(int32),uint8*[],native int,native "
	 "uint,typedref)"},
	{"instance !1 [Names] "
	 "Acme.Shop.Item+Nested`2[System.Int32,System.__Canon]::Do(!0,!1,!!0,!!0&,int32&,!1[],"
	 "!0[0...,0...],!!0[][])" Q,
	 "Acme.Shop.Item.Nested<int32,__Canon>.Do(!0,!1,!!0,!!0&,int32&,!1[],!0[,],!!0[][])"},
	{"void [Names] Acme.Shop.Item::Prim(bool,char,int8,float32,string,object,valuetype "
	 "[System.Runtime]System.Decimal,valuetype "
	 "[System.Runtime]System.Nullable`1<int32>,valuetype "
	 "[System.Runtime]System.ValueTuple`2<int32,string>,valuetype "
	 "[System.Runtime]System.DayOfWeek)" Q,
	 "Acme.Shop.Item.Prim(bool,char,int8,float32,string,object,Decimal,Nullable<int32>,"
	 "ValueTuple<int32,string>,DayOfWeek)"},
	/* generics, nested */
	{"instance int32 [Names] "
	 "Acme.Shop.Item+Nested`2+Deep[System.Int32,System.__Canon]::Go(class "
	 "[System.Collections]System.Collections.Generic.Dictionary`2<!0,class "
	 "[System.Collections]System.Collections.Generic.List`1<!1>>)" Q,
	 "Acme.Shop.Item.Nested<int32,__Canon>.Deep.Go(Dictionary<!0,List<!1>>)"},
	{"instance int32 [Names] "
	 "<>f__AnonymousType0`2[System.Int32,System.__Canon]::GetHashCode()" Q,
	 "AnonymousType0<int32,__Canon>.GetHashCode()"},
	/* explicit implementations of interfaces */
	{"instance valuetype [System.Runtime]System.Decimal [Names] "
	 "Acme.Shop.Item::Acme.Shop.IPrice.Price(int32)" Q,
	 "Acme.Shop.Item.IPrice.Price(int32)"},
	{"instance void [Names] Acme.Shop.Item::Acme.Shop.IBox<System.String>.Put(string,string& "
	 "modreq([System.Runtime]System.Runtime.InteropServices.InAttribute))" Q,
	 "Acme.Shop.Item.IBox<string>.Put(string,string&)"},
	/* async methods, iterators */
	{"instance void [Names] Acme.Shop.Program+<FetchAsync>d__0::MoveNext()" Q,
	 "Acme.Shop.Program.FetchAsync() [async]"},
	{"instance void [Names] Acme.Shop.Program+<GenAsync>d__1`1[Acme.Shop.Point]::MoveNext()" Q,
	 "Acme.Shop.Program.GenAsync<Point>() [async]"},
	{"instance void [Names] "
	 "Acme.Shop.Program+Outer`1+<RunAsync>d__0[System.__Canon]::MoveNext()" Q,
	 "Acme.Shop.Program.Outer<__Canon>.RunAsync() [async]"},
	{"instance bool [Names] Acme.Shop.Program+<Iter>d__3::MoveNext()" Q,
	 "Acme.Shop.Program.Iter() [iterator]"},
	{"instance void [Names] Acme.Shop.Program+<AsyncIter>d__4::MoveNext()" Q,
	 "Acme.Shop.Program.AsyncIter() [async]"},
	{"instance class [System.Runtime]System.Collections.Generic.IEnumerator`1<int32> [Names] "
	 "Acme.Shop.Program+<Iter>d__3::System.Collections.Generic.IEnumerable<System.Int32>."
	 "GetEnumerator()" Q,
	 "Acme.Shop.Program.Iter.IEnumerable<int32>.GetEnumerator()"},
	/* lambdas and local functions */
	{"instance void [Names] Acme.Shop.Program+<>c__DisplayClass9_0::<Main>b__1()" Q,
	 "Acme.Shop.Program.Main.lambda1()"},
	{"instance int32 [Names] Acme.Shop.Program+<>c::<Main>b__9_3(valuetype "
	 "Acme.Shop.Point,valuetype "
	 "Acme.Shop.Point)" Q,
	 "Acme.Shop.Program.Main.lambda3(Point,Point)"},
	{"instance int32 [Names] Acme.Shop.Program+<>c::<.cctor>b__11_0(int32)" Q,
	 "Acme.Shop.Program..cctor.lambda0(int32)"},
	{"instance class [System.Runtime]System.Threading.Tasks.Task`1<!0> [Names] "
	 "Acme.Shop.Program+Outer`1+<>c__DisplayClass0_0[System.Int32]::<RunAsync>b__0()" Q,
	 "Acme.Shop.Program.Outer<int32>.RunAsync.lambda0()"},
	{"instance void [Names] "
	 "Acme.Shop.Program+Outer`1+<>c__DisplayClass0_0+<<RunAsync>b__0>d[System.Int32]::MoveNext("
	 ")" Q,
	 "Acme.Shop.Program.Outer<int32>.RunAsync.lambda0() [async]"},
	{"instance void [Names] Acme.Shop.Program+<>c+<<Main>b__9_4>d::MoveNext()" Q,
	 "Acme.Shop.Program.Main.lambda4() [async]"},
	{"instance void [Names] Acme.Shop.Program+<>c__DisplayClass8_0::.ctor()" Q,
	 "Acme.Shop.Program.<>c__DisplayClass8_0..ctor()"},
	{"int32 [Names] Acme.Shop.Program::<Captures>g__StaticLocal|8_2(int32)" Q,
	 "Acme.Shop.Program.Captures.StaticLocal(int32)"},
	{"instance !!0 [Names] "
	 "Acme.Shop.Program+<>c__DisplayClass8_0::<Captures>g__GenLocal|5(!!0)" Q,
	 "Acme.Shop.Program.Captures.GenLocal(!!0)"},
	{"instance void [Names] "
	 "Acme.Shop.Program+<>c__DisplayClass8_0+<<Captures>g__AsyncLocal|3>d::MoveNext()" Q,
	 "Acme.Shop.Program.Captures.AsyncLocal() [async]"},
	{"instance bool [Names] "
	 "Acme.Shop.Program+<>c__DisplayClass8_0+<<Captures>g__IterLocal|4>d::MoveNext()" Q,
	 "Acme.Shop.Program.Captures.IterLocal() [iterator]"},
	{"int32 [Names] Acme.Shop.Program::<Main>(string[])" Q, "Acme.Shop.Program.Main(string[])"},
};

static void every_construct_of_a_program_has_its_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(program) / sizeof(program[0]); i++)
		assert_full(program[i][0], program[i][1], "Names", "QuickJitted");
}

/* Also from .NET 10.0: rare constructs. */
static const char *const corners[][2] = {
	/* explicit implementations of generic interfaces: names with commas, which reflection
	 * escapes */
	{"instance !1 [Names] "
	 "Acme.Size.Map`2[System.Int32,System.__Canon]::Acme.Size.IMap<K,V>.Get(!0)" Q,
	 "Acme.Size.Map<int32,__Canon>.IMap<K,V>.Get(!0)"},
	{"instance bool [Names] "
	 "Acme.Size.Map`2+<Acme-Size-IMap<K\\,V>-All>d__1[System.Int32,System.__Canon]::MoveNext("
	 ")" Q,
	 "Acme.Size.Map<int32,__Canon>.IMap<K,V>.All() [iterator]"},
	{"instance void [Names] "
	 "Acme.Size.Map`2+<<Acme-Size-IMap<K\\,V>-GetAsync>g__Inner|7_0>d[System.Int32,System.__"
	 "Canon]::"
	 "MoveNext()" Q,
	 "Acme.Size.Map<int32,__Canon>.IMap<K,V>.GetAsync.Inner() [async]"},
	{"void [Names] "
	 "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1["
	 "System.Threading.Tasks.VoidTaskResult,Acme.Size.Program+<>c__DisplayClass7_0+<<Go>b__3>d]"
	 "::.cctor()" Q,
	 "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<VoidTaskResult>."
	 "AsyncStateMachineBox<Program.Go.lambda3>..cctor()"},
	/* lambdas of generic methods: their arguments are those of the enclosing method */
	{"instance int32 [Names] "
	 "Acme.Size.Size+<>c__DisplayClass22_0`1[System.Int32]::<Iter>b__0(int32)" Q,
	 "Acme.Size.Size.Iter<int32>.lambda0(int32)"},
	{"instance void [Names] "
	 "A`1+<>c__DisplayClass2_0`1+<<Iter>b__0>d[System.Byte,System.Int32]::MoveNext()" Q,
	 "A<uint8>.Iter<int32>.lambda0() [async]"},
	{"instance void [Names] Acme.Size.Size+<Iter>d__22`1[System.Int32]::<>m__Finally1()" Q,
	 "Acme.Size.Size.Iter<int32>.Finally1()"},
	/* variables captured by a local function are not arguments in the source */
	{"int32 [Names] Acme.Size.Size::<Loc>g__L|19_0(int32,valuetype "
	 "Acme.Size.Size/<>c__DisplayClass19_0&)" Q,
	 "Acme.Size.Size.Loc.L(int32)"},
	{"void [Names] T::<F>g__L|1_0(valuetype T/<>c__DisplayClass1_0&,valuetype "
	 "T/<>c__DisplayClass1_1`1<!!0>&)" Q,
	 "T.F.L()"},
	{"bool [Names] T::<F>g__L|1_0(class T/<>c__DisplayClass1_0,!!0&)" Q,
	 "T.F.L(T.<>c__DisplayClass1_0,!!0&)"},
	/* each nested type has its own arguments, also inside arguments */
	{"instance bool [Names] "
	 "System.Collections.Concurrent.ConcurrentDictionary`2[System.__Canon,System.UInt64]::"
	 "TryAddInternal(class "
	 "System.Collections.Concurrent.ConcurrentDictionary`2/Tables<!0,!1>,valuetype "
	 "A`1/B`2/C<!0,class D`1<int32[]>,!1>[])" Q,
	 "System.Collections.Concurrent.ConcurrentDictionary<__Canon,uint64>.TryAddInternal("
	 "ConcurrentDictionary<!0,!1>.Tables,"
	 "A<!0>.B<D<int32[]>,!1>.C[])"},
	{"void [Names] T`1[A`1+B[System.Collections.Generic.List`1[System.Int32]]]::F(class "
	 "Odd<int32,!0>)" Q,
	 "T<A<List<int32>>.B>.F(Odd<int32,!0>)"},
	/* types of one file, anonymous types */
	{"void [Names] "
	 "Acme.<Program>F31082048A0C066F4841E3CC31DE6DEB789D9B552DDDAB34644E4FFC486D9ADCF__Hidden::"
	 "Run()" Q,
	 "Acme.Hidden.Run()"},
	{"void [Names] T::F(class "
	 "<Program>F31082048A0C066F4841E3CC31DE6DEB789D9B552DDDAB34644E4FFC486D9ADCF__Hidden/In)" Q,
	 "T.F(Hidden.In)"},
	{"void [Names] "
	 "<Program>F31082048A0C066F4841E3CC31DE6DEB789D9B552DDDAB34644E4FFC486D9ADC__Hidden::Run("
	 ")" Q,
	 "<Program>F31082048A0C066F4841E3CC31DE6DEB789D9B552DDDAB34644E4FFC486D9ADC__Hidden.Run()"},
	{"instance int32 [Names] Acme.Program+<>c::<All>b__8_4(class "
	 "<>f__AnonymousType1`2<int32,int32>)" Q,
	 "Acme.Program.All.lambda4(AnonymousType1<int32,int32>)"},
	/* function pointers with a convention, arrays in arrays */
	{"int32 [Names] Acme.Size::Ptrs(method void *(int32,string),method unmanaged cdecl int32 "
	 "*(int32),method unmanaged void "
	 "*(),int32[0...,0...],string[][0...,0...,0...],int32[][])" Q,
	 "Acme.Size.Ptrs(method void *(int32,string),method unmanaged cdecl int32 *(int32),method "
	 "unmanaged void *(),int32[,],"
	 "string[][,,],int32[][])"},
	{"void [Names] Acme.Point::op_CheckedUnaryNegation(valuetype Acme.Point)" Q,
	 "Acme.Point.op_CheckedUnaryNegation(Point)"},
	{"void [Names] \xc3\x84"
	 "cme.Gr\xc3\xb6\xc3\x9f"
	 "e`1[\xc3\x84"
	 "cme.Stra\xc3\x9f"
	 "e]::L\xc3\xa4nge(class \xc3\x84"
	 "cme.T)" Q,
	 "\xc3\x84"
	 "cme.Gr\xc3\xb6\xc3\x9f"
	 "e<Stra\xc3\x9f"
	 "e>.L\xc3\xa4nge(T)"},
	/* made at run time: any name and any type */
	{"!0[0...,0...] [Names] A.B\\,C\\+D\\[E\\]\\&\\*\\\\F[System.Int32,Acme.P]::odd name(x)[y] "
	 "::z(!1&,class "
	 "[System.Private.CoreLib]System.Collections.Generic.Dictionary`2<!0,string>)" Q,
	 "A.B,C+D[E]&*\\F.odd name(x)[y] ::z(!1&,Dictionary<!0,string>)"},
	{"int32 [Names] dynamicClass::my dynamic (method)(int32,System.Collections.Generic.List`1 "
	 "/* MT: 0x7fcde2373570 */<Acme.Point "
	 "/* MT: 0x7fcde23ac600 */>,int32[0...,0...])" Q,
	 "[dynamic] my dynamic (method)(int32,List<Point>,int32[,])"},
	{"void [Names] dynamicClass::a::b[y]<z>()" Q, "[dynamic] a::b[y]<z>()"},
	{"void [Names] dynamicClass::()" Q, "[dynamic] ()"},
	/* stubs made of IL */
	{"Interop/Error /* MT: 0x7f6d4ce1f6b0 */ [Names] dynamicClass::IL_STUB_PInvoke(native "
	 "int,Interop/Sys/SocketEvent /* MT: "
	 "0x7f6d4ce34018 */*,int32*)" Q,
	 "[stub] PInvoke(native int,Interop.Sys.SocketEvent*,int32*)"},
	{"unmanaged cdecl int32 [Names] dynamicClass::IL_STUB_ReversePInvoke(System.Int32 /* MT: "
	 "0x7fcde2257210 */*)" Q,
	 "[stub] ReversePInvoke(int32*)"},
	{"instance !0 [Names] dynamicClass::IL_STUB_Array_Get(int32,int32)" Q,
	 "[stub] Array_Get(int32,int32)"},
	{"instance !1 [Names] dynamicClass::IL_STUB_Delegate_Invoke(!0)" Q,
	 "[stub] Delegate_Invoke(!0)"},
};

static void rare_constructs_have_their_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(corners) / sizeof(corners[0]); i++)
		assert_full(corners[i][0], corners[i][1], "Names", "QuickJitted");
}

static void other_spellings_of_the_runtime_are_read(void **state)
{
	(void)state;
	assert_full("float64 [webapp] Work::Spin(int32)[OptimizedTier1]", "Work.Spin(int32)",
		    "webapp", "OptimizedTier1");
	assert_full("float64 [webapp] Work::Spin(int32)", "Work.Spin(int32)", "webapp", "");
	assert_full("instance void [webapp] Program+<>c__DisplayClass0_0::<<Main>$>b__0()[Tier0]",
		    "Program.Main.lambda0()", "webapp", "Tier0");
	assert_full("instance void [webapp] "
		    "Program+<>c__DisplayClass0_0::<<Main>b__0>d::MoveNext()[Tier0]",
		    "Program.Main.lambda0() [async]", "webapp", "Tier0");
	assert_full("int32 [webapp] Program::<<Main>$>g__Spin|0_0(int32,valuetype "
		    "Program/<>c__DisplayClass0_0&)",
		    "Program.Main.Spin(int32)", "webapp", "");
	assert_full("instance void [a] "
		    "N.T+<System-Collections-Generic-IEnumerable<System-Int32>-GetEnumerator>d__2::"
		    "MoveNext()",
		    "N.T.IEnumerable<int32>.GetEnumerator() [async]", "a", "");
	assert_full(
		"object [Anonymously Hosted DynamicMethods Assembly] dynamicClass::CallSite.Target("
		"System.Runtime.CompilerServices.Closure /* MT: 0x7f55f7a87268 "
		"*/,object,int32)[Optimized]",
		"[dynamic] CallSite.Target(Closure,object,int32)",
		"Anonymously Hosted DynamicMethods Assembly", "Optimized");
	assert_full("instance void [m] "
		    "System.Box`1[System.Collections.Generic.List`1[System.String[]]]::F(!0[]&)",
		    "System.Box<List<string[]>>.F(!0[]&)", "m", "");
	assert_full("instance void [System.Private.CoreLib] "
		    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+"
		    "AsyncStateMachineBox`1[System.Int32,Acme.Shop.Program+<GenAsync>d__1`1[System."
		    "Int32]]::MoveNext("
		    "class System.Threading.Thread)[OptimizedTier1]",
		    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int32>."
		    "AsyncStateMachineBox<"
		    "Program.GenAsync<int32>>.MoveNext(Thread)",
		    "System.Private.CoreLib", "OptimizedTier1");
	assert_full("void [m] T::Start(valuetype Program/<<Main>$>d__0&,class "
		    "Program/<>c/<<Main>b__9_4>d)",
		    "T.Start(Program.Main&,Program.Main.lambda4)", "m", "");
	assert_full("void [m] A.B::C(class A.B/D/E`1<valuetype F.G>[],class H)",
		    "A.B.C(B.D.E<G>[],H)", "m", "");
	assert_full("instance void [m] A.<PrivateImplementationDetails>::F()",
		    "A.<PrivateImplementationDetails>.F()", "m", "");
	assert_full("instance void [m] A::<X>k__Odd()", "A.<X>k__Odd()", "m", "");
	assert_full("void [m] A::NoArgs", "A.NoArgs", "m", "");
}

static void stubs_are_distinguished_from_foreign_names(void **state)
{
	struct outbuf out = outbuf_to(-1);

	(void)state;
	/* The kind, not the runtime function that made it; some runtimes number them. */
	assert_full("stub Link<InstantiatingStub>", "[stub] InstantiatingStub", "", "");
	assert_full("stub ReportStubBlock<MethodCallThunk>", "[stub] MethodCallThunk", "", "");
	assert_full("stub ReportStubBlock<VSD_ResolveStub>", "[stub] VSD_ResolveStub", "", "");
	assert_full("stub InitThreadManagerPerfMapData<JIT_CopiedWriteBarriers>",
		    "[stub] JIT_CopiedWriteBarriers", "", "");
	assert_full("stub Allocate<FixupPrecode>", "[stub] FixupPrecode", "", "");
	assert_full("stub17 GenerateLookupStub<ResolveStub>", "[stub] ResolveStub", "", "");
	assert_full("stub<17> GenerateLookupStub<ResolveStub>", "[stub] ResolveStub", "", "");
	assert_full("stub CreateHelper<?>", "[stub] CreateHelper", "", "");
	assert_full("stub X<>", "[stub] X", "", "");
	assert_full("stub X", "[stub] X", "", "");
	assert_full("stub <X>", "[stub] <X>", "", "");
	assert_full("stub<17 X<Y>", "stub<17 X<Y>", "", "");
	assert_int_equal(managed_name_full("stub X<Y>", 9, &out, NULL, NULL), MANAGED_NAME_STUB);
	assert_int_equal(managed_name_full("stubborn", 8, &out, NULL, NULL), MANAGED_NAME_OTHER);
	outbuf_close(&out);
	assert_full("LazyCompile:~f /srv/app.js:10:3", "LazyCompile:~f /srv/app.js:10:3", "", "");
	assert_full("py::handler:/srv/app.py", "py::handler:/srv/app.py", "", "");
	assert_full("Lcom/acme/Shop;::price", "Lcom/acme/Shop;::price", "", "");
	assert_full("operator new [] (unsigned long)", "operator new [] (unsigned long)", "", "");
	assert_full("ns::f(int) [clone .cold]", "ns::f(int) [clone .cold]", "", "");
	assert_full("x [m] no colons(int)", "x [m] no colons(int)", "", "");
	assert_full("", "", "", "");
}

static void damaged_and_hostile_names_give_some_text(void **state)
{
	char deep[4096];
	static const char *const openers[] = {"<",  "[",       "(",       "A`1<", "B`1[C", "<>c+",
					      "<<", "method ", "native ", "+",    "::"};

	(void)state;
	for (size_t k = 0; k < sizeof(openers) / sizeof(openers[0]); k++) {
		struct outbuf out = outbuf_to(-1);
		size_t len = strlen(strcpy(deep, "v [m] T::F("));

		if (k & 1)
			len = strlen(strcpy(deep, "v [m] "));
		while (len + 16 < sizeof(deep))
			len += strlen(strcpy(deep + len, openers[k]));
		for (size_t cut = 0; cut <= len; cut += 7)
			managed_name_full(deep, cut, &out, NULL, NULL);
		if (k & 1)
			strcpy(deep + len - 8, "::M(a)");
		managed_name_full(deep, strlen(deep), &out, NULL, NULL);
		assert_int_equal(out.error, 0);
		outbuf_close(&out);
	}
}

/* A type whose only argument is such a type again, and so on. Captured arguments of lambda holders
 * appear once for each level. */
static void arguments_do_not_multiply(void **state)
{
	static const char *const holders[] = {"<>c`1+<a>d+<b>d+<c>d[", "<>c`1+<<<<<a>q>q>q>q>d[",
					      "A`1+<>c`1+<a>d+<b>d[int32,"};

	(void)state;
	assert_full("void [m] <>c`1+<a>d+<b>d[System.Int32]::F()", "a<int32>.b.F()", "m", "");
	for (size_t k = 0; k < sizeof(holders) / sizeof(*holders); k++) {
		struct outbuf raw = outbuf_to(-1), out = outbuf_to(-1);

		outbuf_str(&raw, "void [m] ");
		for (int i = 0; i < MANAGED_TYPE_DEPTH_MAX; i++)
			outbuf_str(&raw, holders[k]);
		outbuf_str(&raw, "X");
		for (int i = 0; i < MANAGED_TYPE_DEPTH_MAX; i++)
			outbuf_char(&raw, ']');
		outbuf_str(&raw, "::F()");
		assert_int_equal(managed_name_full(raw.data, raw.len, &out, NULL, NULL),
				 MANAGED_NAME_METHOD);
		assert_true(out.len < 2 * raw.len);
		outbuf_close(&raw);
		outbuf_close(&out);
	}
}

/* Each argument is scanned once for captured variables, not once for each of its words or
 * brackets. */
static void each_argument_is_scanned_once(void **state)
{
	static const char *const parts[] = {"a ", "(,"};
	enum { BYTES = 64 << 10, NAMES = 4 };
	clock_t begun = clock();

	(void)state;
	for (size_t k = 0; k < 2 * NAMES; k++) {
		struct outbuf raw = outbuf_to(-1), out = outbuf_to(-1);

		outbuf_str(&raw, "int32 [m] T::<F>g__L|0_0(");
		while (raw.len < BYTES)
			outbuf_str(&raw, parts[k % 2]);
		outbuf_str(&raw, "<>c__DisplayClass");
		for (size_t i = k % 2 ? BYTES / 2 : 0; i--;)
			outbuf_char(&raw, ')');
		outbuf_char(&raw, ')');
		(void)managed_name_full(raw.data, raw.len, &out, NULL, NULL);
		assert_true(out.len > 0);
		outbuf_close(&raw);
		outbuf_close(&out);
	}
	assert_true(clock() - begun < cpu_limit(1));
}

/* Brackets that may begin a module are not each searched to the end of the text. */
static void brackets_are_scanned_once(void **state)
{
	enum { BYTES = 4 << 20 };
	struct outbuf raw = outbuf_to(-1), out = outbuf_to(-1);
	struct managed_name_part module;
	clock_t begun = clock();

	(void)state;
	while (raw.len < BYTES)
		outbuf_str(&raw, " [");
	outbuf_str(&raw, "m] T::F()");
	assert_int_equal(managed_name_full(raw.data, raw.len, &out, NULL, &module),
			 MANAGED_NAME_METHOD);
	assert_part(raw.data, module, "m");
	outbuf_close(&raw);
	outbuf_close(&out);
	assert_true(clock() - begun < cpu_limit(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_construct_of_a_program_has_its_name),
		cmocka_unit_test(rare_constructs_have_their_names),
		cmocka_unit_test(other_spellings_of_the_runtime_are_read),
		cmocka_unit_test(stubs_are_distinguished_from_foreign_names),
		cmocka_unit_test(damaged_and_hostile_names_give_some_text),
		cmocka_unit_test(arguments_do_not_multiply),
		cmocka_unit_test(each_argument_is_scanned_once),
		cmocka_unit_test(brackets_are_scanned_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
