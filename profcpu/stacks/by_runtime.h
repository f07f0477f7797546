/* Stacks from the sampler of a .NET runtime, for processes whose memory may not be read. */
#ifndef PROFCPU_STACKS_BY_RUNTIME_H
#define PROFCPU_STACKS_BY_RUNTIME_H

#include "profcpu/post/load.h"
#include "profcpu/stacks/threads.h"

#define BY_RUNTIME_NS (50 * NS_PER_MS) /* of sampling; ending the session takes longer */

/*
 * Runs the sampler of the runtime for a moment. It stops all threads for each sample. Each thread
 * gets the managed stack that it had most often. dir: for the trace; name: of the process, for
 * messages. 0; -errno after one log_error line.
 */
int by_runtime_take(const char *dir, const struct post_options *load, struct profile *profile,
		    struct stacks_threads *threads);

#endif
