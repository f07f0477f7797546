/*
 * The JIT code of a CoreCLR since .NET 8, read from its own structures without its help: nothing is asked of it, it does not stop, and
 * nothing must have been set before. Each scan tells what is new and what is gone since the last one. dotnet/runtime
 * docs/design/datacontracts/ExecutionManager.md, RuntimeTypeSystem.md, Loader.md; layouts come from clr_contract.h.
 *
 * The target goes on while it is read: what does not make sense is passed over and looked at again by the next scan, and counted.
 * All of it may be lies: no pointer is followed without a limit.
 */
#ifndef SYMBOLS_CLR_HEAP_H
#define SYMBOLS_CLR_HEAP_H

#include "symbols/clr_contract.h"
#include "symbols/jit_il.h"

#include <stdbool.h>

#define CLR_HEAP_BODIES_MAX ((size_t)2 << 20) /* methods and blocks of stubs, of all scans: as many as jit_methods.h takes */
#define CLR_HEAP_CODE_BYTES_MAX ((uint64_t)8 << 30) /* of all code heaps, so that their maps stay below 128 MiB */
#define CLR_HEAP_BODY_BYTES_MAX ((uint32_t)256 << 20) /* of one method */
#define CLR_HEAP_NAME_BYTES_MAX ((uint64_t)256 << 20) /* of all names that were ever told */
#define CLR_HEAP_RECHECK_NS 200000000ULL /* in this time bodies of heaps that free single ones are compared once */
#define CLR_HEAP_RECHECK_MIN 64 /* of them in a scan, and at most: */
#define CLR_HEAP_RECHECK_MAX 16384

struct clr_heap;

/* Errors of clr_contract_load. io is copied. */
int clr_heap_new(const struct clr_io *io, const struct clr_anchors *anchors, struct clr_heap **ret, struct parse_error *err);
void clr_heap_free(struct clr_heap *h);

/* name: as .NET's perf map has it, without tier; of a generic method's own type arguments it tells nothing, as there. Borrowed for the
 * call; NUL-terminated. */
struct clr_heap_code {
	uint64_t start;
	uint32_t bytes; /* funclets included */
	bool is_stub;
	const char *name;
	uint32_t name_len;
	/* After clr_heap_want_il, of methods whose IL is known; borrowed for the call. */
	const struct clr_heap_il *il;
};

/* Which IL code comes from. */
struct clr_heap_il {
	uint64_t module; /* a number for the module */
	const unsigned char *mvid; /* its 16 bytes as they are in the metadata */
	const char *path; /* in the process's root, UTF-8 */
	uint32_t rid; /* row of the method */
	struct jit_il_point *points; /* the caller may put them in order */
	size_t npoints;
};

struct clr_heap_listener {
	int (*code)(void *ctx, const struct clr_heap_code *code); /* what starts there now; after `gone` where it replaced another */
	/* seen_ns: CLOCK_MONOTONIC when the scan began that last saw it there; 0: the last scan did. */
	int (*gone)(void *ctx, uint64_t start, uint64_t seen_ns);
	void *ctx; /* what they give but 0 ends the scan */
};

/* From now on each scan compares all that may have been replaced where it is, as the last one of a program should. */
void clr_heap_compare_all(struct clr_heap *h);

/* From now on code comes with its IL, where the runtime has it. */
void clr_heap_want_il(struct clr_heap *h);

/*
 * One scan. 0; -ETIMEDOUT: it was not done at until_ns (CLOCK_MONOTONIC; it ends soon after it, unless the kernel waits for the target:
 * container/memory.h); -ESRCH the process has ended; -EPERM; -E2BIG more code than CLR_RANGES_MAX; what a listener gave; -ENOMEM. After
 * an error what was told holds, nothing is told to be gone that was not looked at, and the next scan tells the rest.
 */
int clr_heap_scan(struct clr_heap *h, const struct clr_heap_listener *l, uint64_t until_ns);

/* Counts, those of the last scan first, then what stands now. */
struct clr_heap_stats {
	size_t added, gone;
	size_t unread; /* parts of the runtime's structures, and bodies, that could not be read or made no sense */
	size_t unnamed; /* bodies without a name: their module's metadata cannot be had, or has no such method */
	size_t rechecked;
	size_t bodies, stubs; /* that are known */
	bool over; /* there were more than CLR_HEAP_BODIES_MAX once: what came after them is not told */
	size_t plain; /* bodies of generic types whose type arguments could not be read: named without */
	size_t with_il, without_il; /* methods that were told with their IL, and those that have none that could be read */
	size_t modules, modules_failed; /* whose metadata was needed, and of those could not be had */
};
void clr_heap_stats(const struct clr_heap *h, struct clr_heap_stats *ret_stats);

/* Whether the runtime describes its layout itself; then a scan has its stubs outside of code heaps too. */
bool clr_heap_is_described(const struct clr_heap *h);

#endif
