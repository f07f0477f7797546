/*
 * Section 105 of ReadyToRun images: which offset of a method's IL its code at an offset is of. Format: dotnet/runtime,
 * src/coreclr/tools/aot/ILCompiler.Reflection.ReadyToRun/DebugInfo.cs and NibbleReader.cs.
 */
#ifndef SYMBOLS_R2R_DEBUG_INFO_H
#define SYMBOLS_R2R_DEBUG_INFO_H

#include "symbols/il_points.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define R2R_DEBUG_INFO_BOUNDS_MAX ((uint32_t)1 << 20) /* of one method */

/* How the places of one method are kept: numbers one by one; bit fields (.NET 10); these with a bit more for async (since). */
enum r2r_bounds {
	R2R_BOUNDS_PLAIN,
	R2R_BOUNDS_PACKED,
	R2R_BOUNDS_ASYNC,
};

/* A place in the code, in their order, and its offset in IL: -1 none, -2 before the first instruction, -3 behind the last. False: enough. */
typedef bool r2r_bound_fn(void *ctx, uint32_t native, uint32_t il);

/* 0 or -EBADMSG, when some may have been told. */
int r2r_debug_info_bounds(const void *bounds, size_t len, enum r2r_bounds kind, r2r_bound_fn *fn, void *ctx);

/*
 * How what is known of a method begins, in the forms up to .NET 10: how many bytes of bounds there are, and where. 0; -EBADMSG: data does
 * not have all of it.
 */
int r2r_debug_info_head(const void *data, size_t len, size_t *ret_bounds, uint32_t *ret_bytes);

/* The section of an image. Begins with {data, len, major, {room}}: data, the whole section, is borrowed; major is of the image's
 * ReadyToRun version. */
struct r2r_debug_info {
	const void *data;
	size_t len;
	unsigned int major;
	struct il_points points;
};

void r2r_debug_info_free(struct r2r_debug_info *d);

/*
 * function: the index of the method's first runtime function; native: offset in the method's code. *ret_il is 0 for the code before that
 * of the first instruction. 0; -ENOENT: nothing is known, or what there is is damaged; -ENOMEM.
 */
int r2r_debug_info_il(struct r2r_debug_info *d, uint32_t function, uint32_t native, uint32_t *ret_il);

#endif
