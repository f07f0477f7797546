/* Storage of samples, 16 bytes each: in memory, and above a limit in an unlinked temporary file. */
#ifndef PROFILE_SAMPLES_H
#define PROFILE_SAMPLES_H

#include "base/vec.h"
#include "profile/sample.h"

#define SAMPLES_IN_MEMORY_MAX ((size_t)4 << 20) /* 64 MiB */

/*
 * One packed sample. Its time is the difference to the previous sample. A sample that does not fit
 * is stored whole in a side table: a pause above two seconds, a weight above 32 bits, more than
 * 262,144 threads. Then tag is SAMPLES_WIDE, and stack is the index in that table.
 */
struct samples_row {
	int32_t time_delta_ns;
	uint32_t stack;
	uint32_t weight;
	uint32_t tag; /* thread : 18, event : 4, cpu + 1 : 10 */
};

struct samples {
	VEC(struct samples_row) rows; /* rows that are not yet in the file */
	VEC(struct profile_sample) wide;
	uint64_t n; /* all samples, including those in the file */
	uint64_t in_file;
	uint64_t last_time_ns;
	size_t rows_max; /* SAMPLES_IN_MEMORY_MAX; smaller in tests */
	int fd;          /* the file, or -1 */
};

void samples_init(struct samples *s);
void samples_free(struct samples *s);

/* Like profile_sample and profile_each_sample. */
int samples_add(struct samples *s, const struct profile_sample *sample);
int samples_each(struct samples *s, int (*fn)(void *ctx, const struct profile_sample *sample),
		 void *ctx);

#endif
