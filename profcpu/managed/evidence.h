/* Times in which something is known of a runtime's threads, and the search in them. */
#ifndef PROFCPU_MANAGED_EVIDENCE_H
#define PROFCPU_MANAGED_EVIDENCE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum evidence_kind {
	EVIDENCE_LOCK,       /* a thread waits for a lock */
	EVIDENCE_PAUSE,      /* the GC has stopped the threads */
	EVIDENCE_COLLECTOR,  /* a thread has stopped the others, and may collect */
	EVIDENCE_STARVATION, /* the pool has too few threads */
	EVIDENCE_JIT,        /* a thread compiles a method */
	EVIDENCE_PHASE,      /* of a collection */
	EVIDENCE_KINDS,
};

/* Times are those of the recording. */
struct evidence_interval {
	int32_t tid; /* 0: all threads */
	uint64_t begin_ns, end_ns;
	uint32_t event; /* what it is made from, for the caller */
};

/* A zeroed one is empty. */
struct evidence {
	VEC(struct evidence_interval) kinds[EVIDENCE_KINDS]; /* by tid and end, once sorted */
	VEC(struct evidence_interval) compiled;              /* by end: those of all threads */
};

void evidence_free(struct evidence *e);

/* 0; -ENOMEM. */
int evidence_add(struct evidence *e, enum evidence_kind kind,
		 const struct evidence_interval *interval);

/* Prepares the search, after all were added. */
void evidence_sort(struct evidence *e);

/* The interval of a kind that takes at least half of a time; NULL: none. */
const struct evidence_interval *evidence_of_half(const struct evidence *e, enum evidence_kind kind,
						 int32_t tid, uint64_t begin_ns, uint64_t end_ns);

/*
 * The interval of a kind that has a moment, of several the first that ends; NULL: none. Gives up
 * after 64 that begin later.
 */
const struct evidence_interval *evidence_at(const struct evidence *e, enum evidence_kind kind,
					    int32_t tid, uint64_t time_ns);

/*
 * Whether a compilation by another thread takes half of the time from begin_ns to end_ns, which
 * ended with it or later.
 */
bool evidence_is_after_compilation(const struct evidence *e, int32_t tid, uint64_t begin_ns,
				   uint64_t end_ns);

#endif
