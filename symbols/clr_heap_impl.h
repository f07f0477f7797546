/* What the files of clr_heap share. */
#ifndef SYMBOLS_CLR_HEAP_IMPL_H
#define SYMBOLS_CLR_HEAP_IMPL_H

#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "symbols/clr_barriers.h"
#include "symbols/clr_heap.h"
#include "symbols/clr_modules.h"
#include "symbols/clr_ranges.h"
#include "symbols/clr_types.h"

/* A heap's nibble map as of the last scan. Bodies that are still to be told have no nibble in it. */
struct clr_code_heap {
	uint64_t list; /* addr of its node */
	uint64_t section; /* start of the range, from which addresses in unwind information count */
	uint64_t base, end, map; /* the map's first nibble is for base; addr of the map */
	bool collectible;
	uint32_t seen; /* the last scan that found it */
	VEC(uint32_t) words;
};

struct clr_body {
	uint64_t start;
	uint64_t print; /* of what describes it, to tell when another one has its place */
	uint32_t bytes;
	uint32_t name; /* in clr_heap.names */
	uint32_t heap;
	bool here, is_stub;
	bool may_move; /* its heap frees single bodies */
	uint64_t seen_ns; /* when the scan began that last saw it there: of all scans where it may not move */
};

/* A body on its way to a name. */
struct clr_candidate {
	uint64_t start, next; /* next: where the code behind it starts, or its heap ends */
	uint64_t looked; /* up to where the code behind it was looked for */
	uint32_t heap;
	bool failed; /* cannot be read or makes no sense now */
	bool known; /* was told before, is to be compared */
	bool is_stub;
	uint64_t header; /* addr of its RealCodeHeader, or the kind of a block of stubs */
	unsigned char code[64]; /* RealCodeHeader with the first unwind information */
	unsigned char last[16]; /* last unwind information */
	uint64_t method; /* addr of its MethodDesc */
	unsigned char desc[32], chunk[64];
	uint64_t type;
	unsigned char dynamic[96]; /* DynamicMethodDesc */
	unsigned char *text, *sig; /* of a dynamic method: its name and signature */
	uint32_t bytes;
	uint64_t print;
	uint64_t debug; /* addr of its debug information; 0: none, or it is not wanted */
	unsigned char debug_head[64];
	uint32_t debug_len; /* bytes of it that were read */
	const unsigned char *bounds; /* NULL: none */
	uint32_t bounds_bytes;
};

/* A range of stubs that is in no code heap. */
struct clr_stub_range {
	uint64_t start, end;
	const char *name; /* static */
};

struct clr_heap {
	struct clr_io target; /* the caller's */
	struct clr_io io; /* the same until until_ns; after it -ETIMEDOUT, so that whatever reads comes to an end */
	uint64_t until_ns; /* CLOCK_MONOTONIC */
	struct clr_contract contract;
	uint64_t anchor; /* an addr in the runtime's module */
	uint32_t scan;
	struct clr_modules_cache modules;
	struct clr_types types;
	VEC(struct clr_code_heap) heaps;
	struct hashmap heaps_by_list;
	VEC(struct clr_body) bodies;
	struct hashmap bodies_by_start;
	VEC(struct clr_stub_range) stubs; /* by start */
	uint64_t began_ns, before_ns; /* when this scan began and the one before it; CLOCK_MONOTONIC, 0: there was none */
	bool has_barriers; /* found */
	struct clr_barriers barriers;
	size_t movable; /* bodies that are here and may move */
	bool compares_all; /* of those, in each scan */
	size_t recheck_at; /* body where the next round of comparing begins */
	bool wants_il;
	VEC(struct jit_il_point) points; /* of the code that is being told */
	struct intern names;
	uint32_t named; /* ids of names */
	uint64_t name_bytes;
	struct clr_heap_stats stats;
};

/* Whether the time of the scan is over: for loops that can be long without a read. */
bool clr_heap_is_late(const struct clr_heap *h);

/* Reads what describes candidates; those that make no sense are marked. 0; -ENOMEM; errors of io. */
int clr_candidates_read(struct clr_heap *h, struct clr_candidate *c, size_t n, struct arena *texts);

/* The name of one that was read, into h->names. 0; -ENOENT none can be had; -ENOMEM; errors of io. */
int clr_candidate_name(struct clr_heap *h, const struct clr_candidate *c, uint32_t *ret_name);

/* Of those that were read, where their places come from. What cannot be read has no IL. 0; -ENOMEM; errors of io. */
int clr_candidates_read_il(struct clr_heap *h, struct clr_candidate *c, size_t n, struct arena *texts);

/* Makes it of what was read. 0; -ENOENT: nothing is known; -ENOMEM; errors of io. */
int clr_candidate_il(struct clr_heap *h, const struct clr_candidate *c, struct clr_heap_il *ret_il);

/* Row of the method in its module's metadata, and the module's addr. 0; -ENOENT: it has none. */
int clr_candidate_method(struct clr_heap *h, const struct clr_candidate *c, uint32_t *ret_rid, uint64_t *ret_module);

/* Tells which ranges of stubs are new and gone. maps: the text of /proc/PID/maps from before ranges was read, so that no new code heap
 * is mapped and in no range; may be NULL. */
int clr_stubs_scan(struct clr_heap *h, const struct clr_ranges *ranges, const char *maps, const struct clr_heap_listener *l);

/* A method without metadata: made by DynamicMethod, or a stub of the runtime in IL. */
bool clr_candidate_is_dynamic(const struct clr_heap *h, const struct clr_candidate *c);

/* Whether its heap frees single bodies. */
bool clr_candidate_may_move(const struct clr_heap *h, const struct clr_candidate *c);

#endif
