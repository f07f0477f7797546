/*
 * Sums of the samples of a profile that have equal event, thread and stack. Samples are summed in
 * batches, because the processor then waits for many places of the table at once.
 */
#ifndef PROFILE_GROUPS_H
#define PROFILE_GROUPS_H

#include "base/vec.h"
#include "profile/sample.h"

#define GROUPS_BATCH ((size_t)2048)

/* A zeroed struct is empty. */
struct groups {
	VEC(struct profile_group) all; /* complete after groups_end */
	/* private */
	uint32_t *slots; /* index + 1 into all */
	size_t nslots;
	struct profile_sample batch[GROUPS_BATCH];
	size_t nbatch;
};

/* Returns 0, -ENOMEM; -E2BIG: too many groups. */
int groups_add(struct groups *g, const struct profile_sample *sample);

/* Sums the last batch. Frees the memory that only new samples need; groups_add can follow. */
void groups_end(struct groups *g);

void groups_free(struct groups *g);

#endif
