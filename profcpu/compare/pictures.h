/* The trees of the pictures of a comparison. */
#ifndef PROFCPU_COMPARE_PICTURES_H
#define PROFCPU_COMPARE_PICTURES_H

#include "flamegraph/tree.h"
#include "profcpu/compare/compare.h"

/* Names of the three parts, which are beside each other on one scale of time. */
#define PICTURES_ON_CPU "[kernel: on a CPU]"
#define PICTURES_WAITS "[kernel: waiting]"
#define PICTURES_CLAIMS "[EventPipe samples]"

/* States of samples, marks above their stacks; PROFILE_RUNNABLE is the fourth. They are no code. */
#define PICTURES_RUNNING "[running]"
#define PICTURES_BLOCKED "[blocked]"
#define PICTURES_NO_EVIDENCE "[state unknown]"
/* Above no method: native threads and code. */
#define PICTURES_NO_METHOD "[no method]"

/*
 * Makes the tree of all three; weights are ns. A sample stands for the time between two rounds of
 * the sampler. memory_max: of the tree; 0: no limit. 0, -ENOMEM, -E2BIG.
 */
int pictures_tree(const struct compare *c, struct profile *profile, uint64_t memory_max,
		  struct tree *ret_tree);

/*
 * Makes the differential tree of methods: the shares of the samples, and how they differ from those
 * of CPU time. 0, -ENOMEM, -E2BIG.
 */
int pictures_difference(const struct compare *c, const struct profile *profile, uint64_t memory_max,
			struct tree *ret_tree);

#endif
