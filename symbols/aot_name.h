/* Names of methods that .NET compiled ahead of time to native code, as people wrote them. */
#ifndef SYMBOLS_AOT_NAME_H
#define SYMBOLS_AOT_NAME_H

#include "base/outbuf.h"

#include <stddef.h>

#define AOT_NAME_DEPTH_MAX 16 /* type arguments nested deeper are copied as they stand */

/*
 * Writes the full form of a symbol of native AOT's compiler (dotnet/runtime, ILCompiler.Compiler NameMangler): assembly, type and
 * method with "_" for every character that is no letter or digit, "__" before the method, type arguments in <>, "_1" behind further
 * overloads. What was lost in that cannot be had back: "_" in the names that people gave reads as ".".
 *
 *	S_P_CoreLib_System_Threading_Thread__StartCallback	System.Threading.Thread.StartCallback
 *	shop_Acme_Item_1<System___Canon>__Hash_1		Acme.Item<__Canon>.Hash
 *	shop_Acme_P__RunAsync_d__0__MoveNext			Acme.P.RunAsync() [async]
 *	shop_Acme_P___c__DisplayClass2_0___Main_b__1		Acme.P.Main.lambda1
 *
 * program: the last part of the image's path, whose name the program's own assembly has by default. 0 or out's error.
 */
int aot_name_full(const char *raw, size_t len, const char *program, struct outbuf *out);

#endif
