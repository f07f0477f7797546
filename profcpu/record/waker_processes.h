/*
 * State of processes that wake threads of the targets: their programs, threads and mappings, which
 * unwinding and naming need. A thread of its own reads it, because /proc may answer late, and the
 * caller must empty rings.
 */
#ifndef PROFCPU_RECORD_WAKER_PROCESSES_H
#define PROFCPU_RECORD_WAKER_PROCESSES_H

#include "sampler/sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAKER_PROCESSES_MAX 1024 /* mappings of further ones are unknown */

/* Reads the state of a process, as sampler_synthesize_process does. */
typedef int (*waker_processes_read)(const struct sampler_synthesis *from, pid_t pid,
				    sampler_synthesized take, void *ctx);

struct waker_processes;

/* The reader may use the result of `from` until the process of profcpu ends. 0, -ENOMEM, -errno. */
int waker_processes_new(const struct sampler_synthesis *from, waker_processes_read read,
			struct waker_processes **ret_wakers);

/* Abandons a read that does not end. */
void waker_processes_free(struct waker_processes *w); /* NULL is fine */

/* The state of a process comes from elsewhere. 0 or -ENOMEM. */
int waker_processes_know(struct waker_processes *w, int32_t pid);

/* Requests the state of a process, unless it is known or was requested. 1: it was requested now;
 * 0; -ENOMEM. */
int waker_processes_request(struct waker_processes *w, int32_t pid);

/*
 * Hands what was read to `take`, as records with times 0, in the calling thread. First waits up to
 * wait_ns for the rest. 0, -ENOMEM, or take's -errno.
 */
int waker_processes_take(struct waker_processes *w, uint64_t wait_ns, sampler_synthesized take,
			 void *ctx);

/* Processes over WAKER_PROCESSES_MAX, and those that could not be read, or not in time. */
uint64_t waker_processes_left_out(struct waker_processes *w);

#endif
