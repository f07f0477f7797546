/*
 * Section 105 of ReadyToRun images: which offset of a method's IL its code at an offset is of. Format: dotnet/runtime,
 * src/coreclr/tools/aot/ILCompiler.Reflection.ReadyToRun/DebugInfo.cs and NibbleReader.cs.
 */
#ifndef SYMBOLS_R2R_DEBUG_INFO_H
#define SYMBOLS_R2R_DEBUG_INFO_H

#include <stddef.h>
#include <stdint.h>

#define R2R_DEBUG_INFO_BOUNDS_MAX ((uint32_t)1 << 20) /* of one method */

/*
 * data: the whole section; major: of the image's ReadyToRun version; function: the index of the method's first runtime function;
 * native: offset in the method's code. *ret_il is 0 for the code before that of the first instruction. 0; -ENOENT: nothing is
 * known; -EBADMSG.
 */
int r2r_debug_info_il(const void *data, size_t len, unsigned int major, uint32_t function, uint32_t native, uint32_t *ret_il);

#endif
