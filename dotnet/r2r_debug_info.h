/*
 * Debug information of ReadyToRun images (section 105): maps offsets in a method's code to its IL.
 * Format: dotnet/runtime, src/coreclr/tools/aot/ILCompiler.Reflection.ReadyToRun/DebugInfo.cs and
 * NibbleReader.cs.
 */
#ifndef DOTNET_R2R_DEBUG_INFO_H
#define DOTNET_R2R_DEBUG_INFO_H

#include "dotnet/il_points.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define R2R_DEBUG_INFO_BOUNDS_MAX ((uint32_t)1 << 20) /* points of one method */

/*
 * Encoding of a method's bounds (its pairs of code and IL offset). PLAIN: separate numbers; PACKED:
 * bit fields (.NET 10); ASYNC: bit fields with one more bit for async (later versions).
 */
enum r2r_bounds {
	R2R_BOUNDS_PLAIN,
	R2R_BOUNDS_PACKED,
	R2R_BOUNDS_ASYNC,
};

/*
 * Receives the bounds in ascending order of native. il: offset in IL; -1: none; -2: before the
 * first instruction; -3: after the last. Returns false to stop.
 */
typedef bool r2r_bound_fn(void *ctx, uint32_t native, uint32_t il);

/* Decodes bounds. 0; -EBADMSG, after some may have been passed to fn. */
int r2r_debug_info_decode_bounds(const void *bounds, size_t len, enum r2r_bounds kind,
				 r2r_bound_fn *fn, void *ctx);

/*
 * Reads the head of a method's debug information, in the formats up to .NET 10: offset and size of
 * its bounds. 0; -EBADMSG: the data ends within the head.
 */
int r2r_debug_info_read_head(const void *data, size_t len, size_t *ret_bounds, uint32_t *ret_bytes);

/*
 * The debug information section of an image. Initialise with {data, len, major, {budget}}. data:
 * the whole section, borrowed. major: ReadyToRun version of the image.
 */
struct r2r_debug_info {
	const void *data;
	size_t len;
	unsigned int major;
	struct il_points points;
};

void r2r_debug_info_free(struct r2r_debug_info *d);

/*
 * Finds the IL offset of an offset in a method's code. function: index of the method's first
 * runtime function. *ret_il is 0 for code before the first instruction. 0; -ENOENT: no information,
 * or damaged; -ENOMEM.
 */
int r2r_debug_info_find_il(struct r2r_debug_info *d, uint32_t function, uint32_t native,
			   uint32_t *ret_il);

#endif
