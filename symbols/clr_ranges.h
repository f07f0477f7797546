/*
 * The map of all code of a CoreCLR: which range of addresses is what. dotnet/runtime docs/design/datacontracts/ExecutionManager.md,
 * "RangeSectionMap".
 */
#ifndef SYMBOLS_CLR_RANGES_H
#define SYMBOLS_CLR_RANGES_H

#include "base/vec.h"
#include "symbols/clr_contract.h"

#include <stdbool.h>

#define CLR_RANGES_MAX ((size_t)1 << 18) /* sections, and fragments that lead to them: each of 128 KiB of code has one */

enum clr_range_flag {
	CLR_RANGE_COLLECTIBLE = 1, /* goes away with its assemblies */
	CLR_RANGE_CODE_HEAP = 2, /* heap_list describes it */
	CLR_RANGE_LIST = 4, /* stubs of a loader heap */
};

struct clr_range {
	uint64_t start, end;
	uint32_t flags;
	uint64_t heap_list; /* addr of a CodeHeapListNode, or 0 */
	uint64_t r2r_module; /* not 0: code of a precompiled image */
};

struct clr_ranges {
	VEC(struct clr_range) ranges; /* in no order */
	size_t unread; /* parts of the map that could not be read: ranges are missing */
};

/* Reads them all; *ret is freed by clr_ranges_free, also after an error. 0; -E2BIG; -ENOMEM; errors of io. */
int clr_ranges_read(const struct clr_io *io, const struct clr_contract *c, struct clr_ranges *ret);
void clr_ranges_free(struct clr_ranges *r);

#endif
