/*
 * Shared by the parts of clr_code: ranges of code and methods (clr_code.c), the start of a method
 * by the nibble map, and stubs (clr_code_find.c).
 */
#ifndef UNWIND_CLR_CODE_IMPL_H
#define UNWIND_CLR_CODE_IMPL_H

#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/stub_code.h"
#include "unwind/code_rules.h"

#define CLR_CODE_AHEAD 256 /* bytes of a stub to read after an address */
#define CLR_CODE_WINDOW (CLR_STUB_CODE_MAX + CLR_CODE_AHEAD)

/*
 * Finds the start of the code at addr in the nibble map of its heap.
 *   base: the addr that the first nibble describes
 *   map: the addr of the map
 * Returns 0; -ENOENT: no code starts within CLR_CODE_METHOD_BYTES_MAX before addr; errors of io.
 */
int clr_code_find_start(const struct clr_io *io, uint64_t base, uint64_t map, uint64_t addr,
			uint64_t *ret_start);

/* The readable bytes around an address. */
struct clr_code_window {
	uint64_t start; /* addr of the first byte */
	size_t len;
	unsigned char bytes[CLR_CODE_WINDOW];
	uint64_t addr; /* 0: not wanted */
};

/*
 * Adds the two reads of a window to a batch, also for windows that are not wanted. After the batch,
 * call clr_code_window_got for all windows in the same order. Returns 0 or -ENOMEM.
 */
int clr_code_window_add(struct clr_code_window *w, uint64_t addr, bool wanted,
			struct clr_batch *batch);
void clr_code_window_got(struct clr_code_window *w, const struct clr_batch *batch, size_t *piece);

/* The bounds and rules of the stub at addr. Returns 0; -ENOENT: an unknown stub; -ENOMEM. */
int clr_code_stub(const struct clr_code_window *w, uint64_t addr, uint64_t *ret_start,
		  uint64_t *ret_end, struct code_rules *ret_rules);

#endif
