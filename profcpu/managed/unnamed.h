/*
 * Stacks of a trace that need names, for the import of a recording, which names them by the same
 * sources as its samples.
 */
#ifndef PROFCPU_MANAGED_UNNAMED_H
#define PROFCPU_MANAGED_UNNAMED_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct unnamed_stack {
	uint64_t number; /* for name */
	int32_t tid;
	uint64_t time_ns;          /* CLOCK_MONOTONIC of the recording */
	const uint64_t *callchain; /* with PERF_CONTEXT_USER; valid until the next call */
	size_t ncallchain;
};

/* A list of them, in the order of time. */
struct unnamed_source {
	pid_t pid; /* as the recording knows it */
	/* The next stack, if it is before a time. False: none. */
	bool (*next)(void *ctx, uint64_t before_ns, struct unnamed_stack *ret_stack);
	/* Sets the thread and the stack of the profile for one that next returned. */
	void (*name)(void *ctx, uint64_t number, uint32_t thread, uint32_t stack);
	void *ctx;
};

/* A callchain that is made again and again. */
struct unnamed_callchain {
	VEC(uint64_t) words;
};

/*
 * Makes the callchain of the addresses of a trace, of pointer_bytes each, innermost first. leaf: a
 * further address before them; 0: none. 0; -ENOMEM.
 */
int unnamed_make(struct unnamed_callchain *c, uint64_t leaf, const char *bytes, size_t len,
		 size_t pointer_bytes);
void unnamed_free(struct unnamed_callchain *c);

#endif
