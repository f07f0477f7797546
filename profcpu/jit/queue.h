/*
 * The processes that the capture watches, by PID and by the time when they are due: a binary heap,
 * and the place in it of each PID. Finding by PID and reading the first cost the same for any
 * number of processes; changes cost its logarithm. One thread uses a queue.
 */
#ifndef PROFCPU_JIT_QUEUE_H
#define PROFCPU_JIT_QUEUE_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "profcpu/jit/capture_process.h"

/* A zeroed struct is empty. Processes are borrowed. */
struct jit_queue {
	VEC(struct jit_process *) heap; /* [0] is due first, by next_ns */
	struct hashmap places;          /* PID -> index into heap */
};

/* Adds a process, whose PID must not be in the queue. Returns 0 or -ENOMEM. */
int jit_queue_add(struct jit_queue *q, struct jit_process *p);

/* The process with a PID, or NULL. */
struct jit_process *jit_queue_find(const struct jit_queue *q, pid_t pid);

/* Restores the order after next_ns of a process of the queue changed. */
void jit_queue_update(struct jit_queue *q, const struct jit_process *p);

void jit_queue_remove(struct jit_queue *q, const struct jit_process *p);

void jit_queue_free(struct jit_queue *q); /* Leaves an empty queue; frees no process. */

#endif
