/*
 * Takes the stack of each thread of a process, without stopping it. Stacks of threads that wait are
 * read from its memory. Threads that run are sampled on their CPUs. If memory may not be read, the
 * runtime's sampler shows at least managed code.
 */
#ifndef PROFCPU_STACKS_SNAPSHOT_H
#define PROFCPU_STACKS_SNAPSHOT_H

#include "profcpu/post/load.h"
#include "profcpu/stacks/threads.h"
#include "profile/profile.h"

#include <stdbool.h>

/* Time for threads to wait, or to run and be sampled. Others have no stack. */
#define SNAPSHOT_NS NS_PER_S
#define SNAPSHOT_THREAD_NS NS_PER_MS /* in addition for each thread */

struct snapshot_options {
	pid_t pid;
	struct opener *opener; /* borrowed */
	struct post_options load;
};

struct snapshot {
	struct stacks_threads threads;
	struct profile *profile; /* has the stacks of the threads */
	uint64_t realtime_ns;    /* when it began */
	uint64_t duration_ns;    /* how long it took stacks; names took longer */
	bool by_runtime;         /* the stacks are those of the runtime's sampler */
	bool refused;            /* no stack could be taken at all; log_error reported why */
};

/* 0; -errno after one log_error line. In any case, free it. */
int snapshot_take(const struct snapshot_options *options, struct snapshot *ret_snapshot);
void snapshot_free(struct snapshot *s);

#endif
