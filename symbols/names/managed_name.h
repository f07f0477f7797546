/*
 * Converts names of managed methods to the form that pictures and reports show. Names that
 * compilers make (lambdas, local functions, state machines) are in managed_type_generated.c, except
 * MoveNext, whose name becomes "[async]" or "[iterator]" here.
 */
#ifndef SYMBOLS_NAMES_MANAGED_NAME_H
#define SYMBOLS_NAMES_MANAGED_NAME_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* The kind of a perf map's text. */
enum managed_name_kind {
	MANAGED_NAME_METHOD, /* "float64 [webapp] Work::Spin(int32)[OptimizedTier1]" */
	MANAGED_NAME_STUB,   /* "stub GenerateLookupStub<ResolveStub>" */
	MANAGED_NAME_OTHER,  /* a name of another runtime, copied unchanged */
};

/* A part of the text that was passed in; len 0: none. */
struct managed_name_part {
	size_t at, len;
};

/*
 * Writes the full form of a perf map's name to out. text need not be NUL-terminated. The runtime
 * (CoreCLR's PerfMap::LogJITCompiledMethod) writes names like this:
 * `[instance ]RETURN [MODULE] TYPE::METHOD(ARGS)[TIER]`.
 *
 *	Acme.Shop.Item+Nested`2[System.Int32,System.__Canon]::Do(!0,class [X]A.B`1<!1>[])
 *		Acme.Shop.Item.Nested<int32,__Canon>.Do(!0,B<!1>[])
 *	P+<FetchAsync>d__0::MoveNext()
 *		P.FetchAsync() [async]      (an iterator's returns bool: [iterator])
 *	P+<>c__DisplayClass8_0::<Captures>b__6(int32)
 *		P.Captures.lambda6(int32)
 *	P::<Captures>g__Local|8_2(int32)
 *		P.Captures.Local(int32)
 *	Item::Acme.Shop.IBox<System.String>.Open()
 *		Item.IBox<string>.Open()
 *	stub ReportStubBlock<MethodCallThunk>
 *		[stub] MethodCallThunk
 *	dynamicClass::IL_STUB_PInvoke(int32)
 *		[stub] PInvoke(int32)
 *	dynamicClass::lambda_method1(object)
 *		[dynamic] lambda_method1(object)
 *
 * The declaring type keeps its namespace; argument types and type arguments lose theirs. Any input
 * is accepted: OTHER is copied. out->error is set as usual. ret_tier and ret_module may be NULL.
 */
enum managed_name_kind managed_name_full(const char *text, size_t len, struct outbuf *out,
					 struct managed_name_part *ret_tier,
					 struct managed_name_part *ret_module);

/*
 * Whether it is the name of a stub: "stub MAKER<KIND>", or "stub<12> MAKER<KIND>" from a
 * runtime that counts stubs.
 */
bool managed_name_is_stub(const char *text, size_t len);

#endif
