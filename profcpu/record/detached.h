/* Processes that the kernel stopped sampling at an exec, because the new program has other rights.
 */
#ifndef PROFCPU_RECORD_DETACHED_H
#define PROFCPU_RECORD_DETACHED_H

#include <stddef.h>
#include <sys/types.h>

#define RECORD_DETACHED_BYTES 96

/* Zeroed: none. */
struct record_detached {
	size_t count;
	char first[RECORD_DETACHED_BYTES]; /* the first process, for a message */
};

/* Counts a SAMPLER_PROCESS_DETACHED. command: the program that profcpu started as pid; NULL: none.
 */
void record_detached_add(struct record_detached *d, pid_t pid, const char *command);

/* Logs a warning with a remedy, if count is not 0. */
void record_detached_report(const struct record_detached *d);

#endif
