/* One sample of a profile. */
#ifndef PROFILE_SAMPLE_H
#define PROFILE_SAMPLE_H

#include <stdint.h>

struct profile_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC of the recording, or the source's time; 0: unknown */
	uint64_t weight;  /* the period; 1 for events without one */
	uint32_t event, thread, stack; /* ids */
	int32_t cpu;                   /* -1: unknown */
};

#endif
