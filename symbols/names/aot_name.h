/* Names of methods that .NET compiled ahead of time to native code, converted to source form. */
#ifndef SYMBOLS_NAMES_AOT_NAME_H
#define SYMBOLS_NAMES_AOT_NAME_H

#include "base/outbuf.h"

#include <stddef.h>

#define AOT_NAME_DEPTH_MAX 16 /* type arguments nested deeper are copied unchanged */

/*
 * Writes the full form of a symbol of native AOT's compiler (dotnet/runtime, ILCompiler.Compiler
 * NameMangler). The symbol has assembly, type and method, with "_" for each character that is not a
 * letter or digit. "__" precedes the method, type arguments stand in <>, "_1" follows further
 * overloads. The conversion cannot restore everything: "_" in a source name becomes ".".
 *
 *	S_P_CoreLib_System_Threading_Thread__StartCallback
 *		System.Threading.Thread.StartCallback
 *	shop_Acme_Item_1<System___Canon>__Hash_1
 *		Acme.Item<__Canon>.Hash
 *	shop_Acme_P__RunAsync_d__0__MoveNext
 *		Acme.P.RunAsync() [async]
 *	shop_Acme_P___c__DisplayClass2_0___Main_b__1
 *		Acme.P.Main.lambda1
 *
 * program: the last part of the image's path, by default the name of the program's own assembly.
 * Returns 0 or out's error.
 */
int aot_name_full(const char *raw, size_t len, const char *program, struct outbuf *out);

#endif
