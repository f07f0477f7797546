/* One sample of a profile, and the sum of equal ones. */
#ifndef PROFILE_SAMPLE_H
#define PROFILE_SAMPLE_H

#include <stdint.h>

struct profile_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC of the recording, or the source's time; 0: unknown */
	uint64_t weight;  /* the period; 1 for events without one */
	uint32_t event, thread, stack; /* ids */
	int32_t cpu;                   /* -1: unknown */
};

/*
 * Sum of samples with equal event, thread and stack; weights stop at UINT64_MAX. After UINT32_MAX
 * samples another group begins. All outputs are made from groups, except texts of single samples.
 */
struct profile_group {
	uint64_t weight;
	uint32_t samples;
	uint32_t event, thread, stack;
};

#endif
