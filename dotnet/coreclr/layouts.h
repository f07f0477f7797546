/*
 * Built-in layouts of .NET 8 and 9 on x86-64 Linux. .NET 10 and later describe themselves
 * (dotnet/coreclr/contract.h). contract.c refuses a version without a layout, with -ENOTSUP.
 */
#ifndef DOTNET_CORECLR_LAYOUTS_H
#define DOTNET_CORECLR_LAYOUTS_H

#include <stdint.h>

/*
 * Globals of our own. The first: bits of MethodTable.MTFlags2 below the row of the type's
 * definition, if not 8. The second: read metadata in the making by dotnet/coreclr/emitted.h.
 */
#define CLR_LAYOUTS_TOKEN_SHIFT "profcpu.TypeTokenShift"
#define CLR_LAYOUTS_EMITTED "profcpu.EmittedMetadata"

/*
 * The text of a contract descriptor for a major version of CoreCLR; static. NULL: unknown version.
 * Its table of pointers has one entry: the map of code ranges, which is the first of g_dacTable.
 */
const char *clr_layouts_find(uint32_t major);

#endif
