/*
 * CoreCLR's map of all its code: the ranges of addresses and their kinds. Format: dotnet/runtime,
 * docs/design/datacontracts/ExecutionManager.md, "RangeSectionMap".
 */
#ifndef DOTNET_CORECLR_CODE_RANGES_H
#define DOTNET_CORECLR_CODE_RANGES_H

#include "base/vec.h"
#include "dotnet/coreclr/contract.h"

#include <stdbool.h>

/* Sections, and fragments that refer to them. Each 128 KiB of code has one fragment. */
#define CLR_CODE_RANGES_MAX ((size_t)1 << 18)

enum clr_range_flag {
	CLR_RANGE_COLLECTIBLE = 1, /* freed together with its assemblies */
	CLR_RANGE_CODE_HEAP = 2,   /* described by heap_list */
	CLR_RANGE_LIST = 4,        /* stubs of a loader heap */
};

struct clr_code_range {
	uint64_t start, end;
	uint32_t flags;
	uint64_t heap_list;  /* addr of a CodeHeapListNode, or 0 */
	uint64_t r2r_module; /* not 0: code of a precompiled image */
};

struct clr_code_ranges {
	VEC(struct clr_code_range) ranges; /* not sorted */
	/* Parts of the map that could not be read. Their ranges are missing. */
	size_t unread;
};

/*
 * Reads all ranges. Free *ret by clr_code_ranges_free, also after an error. 0; -E2BIG; -ENOMEM;
 * errors of io.
 */
int clr_code_ranges_read(const struct clr_io *io, const struct clr_contract *c,
			 struct clr_code_ranges *ret);
void clr_code_ranges_free(struct clr_code_ranges *r);

#endif
