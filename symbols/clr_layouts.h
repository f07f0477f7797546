/* How .NET 8 and 9 lay out what .NET 10 and later describe themselves (symbols/clr_contract.h). x86-64 Linux. */
#ifndef SYMBOLS_CLR_LAYOUTS_H
#define SYMBOLS_CLR_LAYOUTS_H

#include <stdint.h>

/* Globals that no runtime has: how far up the number of a type's definition is in MethodTable.MTFlags2, where that is not 8 bits; and that
 * metadata in the making is as clr_emitted.h reads it. */
#define CLR_LAYOUTS_TOKEN_SHIFT "profcpu.TypeTokenShift"
#define CLR_LAYOUTS_EMITTED "profcpu.EmittedMetadata"

/*
 * The text of a contract descriptor for a version of CoreCLR, static. Its table of pointers has one entry: the runtime's map of its
 * code, which is the first of its table for debuggers (g_dacTable). NULL: it is not known.
 */
const char *clr_layout_of(uint32_t major);

#endif
