/*
 * Samples the threads of a process that run, until each has a stack. The kernel interrupts a thread
 * on its CPU for each sample, for some microseconds; no thread is stopped.
 */
#ifndef PROFCPU_STACKS_RUNNING_H
#define PROFCPU_STACKS_RUNNING_H

#include "recording/perfdata.h"
#include "sampler/problem.h"

#include <stdint.h>
#include <sys/types.h>

#define RUNNING_HZ 1000 /* samples of a thread in a second on a CPU */

/* Takes a record and returns 0 or -errno. A sample has user registers and a copy of its stack. */
typedef int (*running_take)(void *ctx, const struct perfdata_record *record);

struct running;

/*
 * Begins to sample the process. take gets the maps of the kernel at once. 0; -errno with *problem;
 * take's, -ENOMEM.
 */
int running_new(pid_t pid, running_take take, void *ctx, struct running **ret_running,
		struct sampler_problem *problem);
void running_free(struct running *r);

/* Waits for records until until_ns (CLOCK_MONOTONIC) and passes them on. 0 or take's -errno. */
int running_drain(struct running *r, uint64_t until_ns);

#endif
