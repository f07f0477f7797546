/*
 * Shared by the parts of symbolizer: records and samples (symbolizer.c), the frame of an address
 * and the use of stored lookups (symbolizer_frame.c), results for the report
 * (symbolizer_results.c).
 */
#ifndef SYMBOLS_SYMBOLIZER_IMPL_H
#define SYMBOLS_SYMBOLIZER_IMPL_H

#include "symbols/callchains.h"
#include "symbols/frames.h"
#include "symbols/images.h"
#include "symbols/jit/runtime.h"
#include "symbols/store/lookup_cache.h"
#include "symbols/store/store.h"
#include "symbols/stripped.h"
#include "symbols/symbolizer.h"
#include "symbols/symtab/kernel_map.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The frame of an address in a file, which is the same in all processes. Short processes of one
 * program share these results. The newest entry of a slot replaces the older one.
 */
struct symbolizer_known {
	uint64_t place; /* the offset in the file, enum frame_grade and exact */
	uint32_t image; /* in lookup_cache, + 1; 0: free */
	uint32_t frame;
};

#define SYMBOLIZER_KNOWN 131072u /* entries, 2 MB; a power of two */

struct symbolizer {
	struct profile *profile;
	struct symbolizer_options options;
	struct tracker *tracker;
	struct lookup_cache lookup_cache;
	struct images *images;
	struct jit_runtimes runtimes;
	struct stripped *stripped; /* NULL: the names of the store are not improved */
	struct kernel_map kernel;
	struct frames frames;
	uint32_t kernel_image;   /* in lookup_cache */
	uint32_t unknown_module; /* profile text "[unknown]" */
	struct callchains callchains;
	bool other_pid_ns_seen; /* the recorder ran inside a PID namespace */
	bool has_store;         /* names were stored and could be read */
	bool store_left_out;    /* names were stored, but need more memory than is left */
	/*
	 * The store lacks some symbols of JIT-compiled code, which are looked up again for other
	 * times.
	 */
	bool unkept;
	bool from_store; /* names of all images are stored: nothing is looked up on this machine */
	bool improved;   /* a better symbol replaced one of the store */
	bool new_lines;
	/* The map that a lookup found last, and the state of its address space; 0: none. */
	struct process_map map;
	uint32_t map_generation;
	struct symbolizer_known *known; /* SYMBOLIZER_KNOWN entries; NULL: not made yet */
	bool timed;                     /* a symbol of the current frame holds at some times only */
	struct store_notes notes;       /* with has_store */
};

/* callchains_frame_fn: makes the frame of an address. */
int symbolizer_frame(void *ctx, const struct callchain_key *key, struct callchain_frame *ret_frame);

/* Whether an image of lookup_cache may be looked up on this machine. */
bool symbolizer_may_use_machine(const struct symbolizer *s, uint32_t image);

#endif
