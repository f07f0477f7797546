/*
 * Permissions of this process: capabilities, sysctls, memory for rings, and what to do if one is
 * missing. sampler_explain.c has the advice after any other failed perf_event_open.
 */
#ifndef SAMPLER_PERMISSION_H
#define SAMPLER_PERMISSION_H

#include "sampler/problem.h"
#include "sampler/roots.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* Linux 5.8 */
#endif

bool sampler_has_cap(int cap);

/* The number in /proc/sys/kernel/NAME; fallback if it is not readable. */
long sampler_sysctl(const struct sampler_roots *roots, const char *name, long fallback);

/* Whether rings may lock any amount of memory: with CAP_IPC_LOCK. */
bool sampler_locks_freely(void);

/*
 * Bytes that rings may lock, those of other processes of this user included. SIZE_MAX with
 * CAP_IPC_LOCK. Otherwise a share per CPU plus RLIMIT_MEMLOCK (kernel/events/core.c, perf_mmap).
 */
size_t sampler_may_lock(const struct sampler_roots *roots, size_t ncpus);

/* Explains a denied event on a whole CPU; `where`: "on CPU 3". Returns error. */
int permission_explain_cpu(const struct sampler_roots *roots, int error, const char *what,
			   const char *where, struct sampler_problem *problem);

#endif
