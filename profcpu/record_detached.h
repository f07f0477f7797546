/* Processes that the kernel stopped sampling, because they executed a program with other rights than they had. */
#ifndef PROFCPU_RECORD_DETACHED_H
#define PROFCPU_RECORD_DETACHED_H

#include <stddef.h>
#include <sys/types.h>

#define RECORD_DETACHED_BYTES 96

/* Zeroed: none. */
struct record_detached {
	size_t count;
	char first[RECORD_DETACHED_BYTES]; /* in words */
};

/* SAMPLER_PROCESS_DETACHED came for pid. command: the program that we started as this process; NULL: we did not. */
void record_detached_add(struct record_detached *d, pid_t pid, const char *command);

/* Warns, with what can be done about it, if there are any. */
void record_detached_say(const struct record_detached *d);

#endif
