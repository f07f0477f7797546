/*
 * CPU samples of the runtime's own work: JIT compilation, and the GC. Joins each sample with what
 * the runtime's events say of its time.
 */
#ifndef PROFCPU_MANAGED_WORK_H
#define PROFCPU_MANAGED_WORK_H

#include "profcpu/managed/events.h"
#include "profcpu/managed/evidence.h"
#include "profile/profile.h"

#include <stdint.h>

struct work_sample {
	int32_t tid;
	uint64_t time_ns; /* of the recording */
	uint64_t weight;
	uint32_t thread, stack; /* of the profile */
};

/* Samples of a thread with one stack, in the same work. */
struct work_sum {
	uint32_t thread, stack;
	bool compiles; /* else it collects */
	/* The event of the EVIDENCE_JIT, UINT32_MAX: no method known; or enum managed_phase. */
	uint32_t event;
	uint64_t weight, samples;
};

struct work;

/*
 * evidence: borrowed, and sorted before the first sample. The event of an EVIDENCE_PHASE is its
 * enum managed_phase. 0; -ENOMEM.
 */
int work_new(const struct evidence *evidence, struct work **ret_work);
void work_free(struct work *w);

/* Takes a sample if it is of such work. 0; -ENOMEM. */
int work_take(struct work *w, const struct profile *profile, const struct work_sample *sample);

/* fn: a result other than 0 ends it, and is returned. */
int work_each(const struct work *w, int (*fn)(void *ctx, const struct work_sum *sum), void *ctx);

#endif
