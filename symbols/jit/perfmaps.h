/*
 * Finds, checks and loads the perf maps of processes on the machine of the recording. Limits hold
 * for all of them together, so that hostile or huge maps leave room for others. Names of jitdumps
 * and recorded methods take from the same memory.
 */
#ifndef SYMBOLS_JIT_PERFMAPS_H
#define SYMBOLS_JIT_PERFMAPS_H

#include "container/opener.h"
#include "symbols/core/symbol.h"
#include "symbols/jit/users.h"
#include "symbols/store/jit_damage.h"

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct with opener (may be NULL) and users set is ready; both are borrowed. */
struct jit_perfmaps {
	struct opener *opener;
	struct jit_users *users;
	uint64_t bytes;  /* of files, charged so far */
	uint64_t memory; /* that further maps may take, once memory_set; before: half of what is
			    left */
	bool memory_set;
};

/* A loaded perf map, or the reason for there being none. */
struct jit_perfmap {
	struct symbol_provider *names; /* NULL: none; the caller frees it */
	const char *why; /* why not, or not all, of an existing map was read; NULL. Static. */
	bool found;      /* a map exists, and its runtime may add to it */
};

/* The memory that one more map, or one process's methods, may take: half of what is left. */
uint64_t jit_perfmaps_memory(struct jit_perfmaps *maps);

/* Loads the perf map that a process has now. Counts in damage. Returns 0 or -ENOMEM. */
int jit_perfmaps_load(struct jit_perfmaps *maps, int32_t pid, struct jit_damage *damage,
		      struct jit_perfmap *ret_map);

#endif
