/* Threads with equal stacks and states, together. */
#ifndef PROFCPU_STACKS_GROUPS_H
#define PROFCPU_STACKS_GROUPS_H

#include "profcpu/stacks/threads.h"
#include "profile/profile.h"

#define STACKS_STATE_BYTES 96

struct stacks_group {
	const struct stacks_thread *const
		*threads; /* by name, then tid; borrowed from the groups */
	size_t n;
};

struct stacks_groups {
	const struct stacks_thread **threads;
	VEC(struct stacks_group) list; /* most threads first, then those that run */
};

/*
 * Groups the threads that have not ended. Stacks are equal if the names and lines of their frames
 * are, also of different versions of a method. 0 or -ENOMEM.
 */
int stacks_groups_make(const struct profile *profile, struct stacks_threads *threads,
		       struct stacks_groups *ret_groups);
void stacks_groups_free(struct stacks_groups *g);

/* The state in words: "running", "waiting in futex". */
void stacks_group_state(const struct stacks_thread *thread, char text[STACKS_STATE_BYTES]);

#endif
