/* Samples, 16 bytes each, in memory and past a limit in an unlinked temporary file. */
#ifndef PROFILE_SAMPLES_H
#define PROFILE_SAMPLES_H

#include "base/vec.h"
#include "profile/profile.h"

/*
 * One packed sample. Time is the difference to the sample before. What does not fit (a pause of over two seconds, a weight
 * over 32 bits, the 300,000th thread) is kept whole in a side table: then tag is SAMPLES_WIDE and stack its index.
 */
struct samples_row {
	int32_t time_delta_ns;
	uint32_t stack;
	uint32_t weight;
	uint32_t tag; /* thread : 18, event : 4, cpu + 1 : 10 */
};

struct samples {
	VEC(struct samples_row) rows; /* those not yet in the file */
	VEC(struct profile_sample) wide;
	uint64_t n; /* all, with those in the file */
	uint64_t in_file;
	uint64_t last_time_ns;
	size_t rows_max; /* PROFILE_SAMPLES_IN_MEMORY; smaller in tests */
	int fd; /* the file, or -1 */
};

void samples_init(struct samples *s);
void samples_free(struct samples *s);

/* As profile_sample and profile_each_sample. */
int samples_add(struct samples *s, const struct profile_sample *sample);
int samples_each(struct samples *s, int (*fn)(void *ctx, const struct profile_sample *sample), void *ctx);

#endif
