/*
 * Finds, checks and loads the perf maps of processes on the machine of the recording. Limits hold
 * for all of them together, and each process has its share (base/fair_share.h). Names of jitdumps
 * and recorded methods take from the same memory, and the bytes of jitdumps count, too.
 */
#ifndef SYMBOLS_JIT_PERFMAPS_H
#define SYMBOLS_JIT_PERFMAPS_H

#include "base/fair_share.h"
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
	struct fair_share files;  /* bytes of files, also of jitdumps */
	struct fair_share memory; /* limit 0: not set yet; then half of what is left */
};

/* A loaded perf map, or the reason for there being none. */
struct jit_perfmap {
	struct symbol_provider *names; /* NULL: none; the caller frees it */
	const char *why; /* why not, or not all, of an existing map was read; NULL. Static. */
	bool found;      /* a map exists, and its runtime may add to it */
};

/*
 * Charges a perf map or jitdump before it is read, for each process that has it. Returns 0;
 * -EDQUOT: it exceeds the process's share, with JIT_FILES_EXCEED as the reason; -errno.
 */
int jit_perfmaps_charge(struct jit_perfmaps *maps, int32_t pid, int fd);
#define JIT_FILES_EXCEED                                                                          \
	"the perf maps and jitdumps of all processes exceed 16 GiB, or those of one process its " \
	"share; truncate or remove the largest"

/* The memory that a process's map and methods may still take. */
uint64_t jit_perfmaps_memory(struct jit_perfmaps *maps, int32_t pid);

/* Loads the perf map that a process has now. Counts in damage. Returns 0 or -ENOMEM. */
int jit_perfmaps_load(struct jit_perfmaps *maps, int32_t pid, struct jit_damage *damage,
		      struct jit_perfmap *ret_map);

#endif
