/* What the files of clr_code share: where a method begins, and stubs. */
#ifndef UNWIND_CLR_CODE_IMPL_H
#define UNWIND_CLR_CODE_IMPL_H

#include "symbols/clr_batch.h"
#include "symbols/clr_stub_code.h"
#include "unwind/code_rules.h"

#define CLR_CODE_AHEAD 256 /* bytes behind an address that are read of a stub */
#define CLR_CODE_WINDOW (CLR_STUB_CODE_MAX + CLR_CODE_AHEAD)

/*
 * Where the code begins that addr is in, by the nibble map of its heap: base: what its first nibble is for; map: its addr. 0; -ENOENT: no code begins
 * within CLR_CODE_METHOD_BYTES_MAX before addr; errors of io.
 */
int clr_code_find_start(const struct clr_io *io, uint64_t base, uint64_t map, uint64_t addr, uint64_t *ret_start);

/* Bytes around an address, as far as they can be read. */
struct clr_code_window {
	uint64_t start; /* addr of the first byte */
	size_t len;
	unsigned char bytes[CLR_CODE_WINDOW];
	uint64_t addr; /* 0: nothing is wanted */
};

/* Two pieces for each window, that is wanted or not; clr_code_window_got for all of them in the same order. 0 or -ENOMEM. */
int clr_code_window_add(struct clr_code_window *w, uint64_t addr, bool wanted, struct clr_batch *batch);
void clr_code_window_got(struct clr_code_window *w, const struct clr_batch *batch, size_t *piece);

/* The stub at addr. 0; -ENOENT: nothing is known of it; -ENOMEM. */
int clr_code_stub(const struct clr_code_window *w, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end, struct code_rules *ret_rules);

#endif
