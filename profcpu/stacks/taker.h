/* Takes stacks of the threads of a process, and writes them to the files of a recording. */
#ifndef PROFCPU_STACKS_TAKER_H
#define PROFCPU_STACKS_TAKER_H

#include "profcpu/stacks/files.h"
#include "profcpu/stacks/threads.h"

struct taker_options {
	struct stacks_threads *threads; /* get their stacks; borrowed */
	struct stacks_files *files;     /* borrowed */
	struct opener *opener;          /* borrowed */
	uint64_t limit_ns;              /* longest time */
};

/*
 * Takes the stack of each thread. Threads without one have the reason.
 *   0, also if threads have no stack;
 *   -EACCES, -EPERM, -ENOSYS, -ENOENT: its memory, or where its threads wait, may not be read;
 *   -ENOTSUP: no rules for this architecture;
 *   -ETIME: it does not answer (ask.h);
 *   -ESRCH; -ENOMEM; -errno.
 */
int taker_run(const struct taker_options *options);

#endif
