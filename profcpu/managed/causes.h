/*
 * Waits by their causes: joins each wait with what the runtime's events say of its time, and with
 * the names on its stack.
 */
#ifndef PROFCPU_MANAGED_CAUSES_H
#define PROFCPU_MANAGED_CAUSES_H

#include "profcpu/managed/cause_rules.h"
#include "profcpu/managed/evidence.h"

#include <stdint.h>

struct causes;

struct cause_wait {
	int32_t tid;
	uint64_t begin_ns, end_ns;
	bool is_estimated; /* its time is not known, so no event explains it */
	/* It stands for this time: blocked, and then without a CPU. */
	uint64_t blocked_ns, runnable_ns;
	uint32_t thread, stack; /* of the profile */
};

/* Waits of a thread with one stack and one cause. */
struct cause_sum {
	uint32_t thread, stack;
	enum wait_cause cause;
	bool is_estimated;
	uint32_t event; /* of the EVIDENCE_LOCK that shows the cause; UINT32_MAX: none */
	uint64_t ns, waits;
};

/* evidence: borrowed, and sorted before the first wait. 0; -ENOMEM. */
int causes_new(const struct evidence *evidence, struct causes **ret_causes);
void causes_free(struct causes *c);

/* 0; -ENOMEM. */
int causes_take(struct causes *c, const struct cause_wait *wait);

/* Finds the causes. fn: a result other than 0 ends it. 0; -ENOMEM; the result of fn. */
int causes_finish(struct causes *c, struct profile *profile,
		  int (*fn)(void *ctx, const struct cause_sum *sum), void *ctx);

#endif
