/*
 * Says what the threads of a process did at each time, by their recorded waits. A thread ran
 * whenever it did not wait. All times are CLOCK_MONOTONIC.
 */
#ifndef PROFCPU_COMPARE_TIMELINE_H
#define PROFCPU_COMPARE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum timeline_state {
	TIMELINE_UNKNOWN, /* before its begin, after its end, or switches are missing */
	TIMELINE_RUNNING,
	TIMELINE_RUNNABLE, /* it waited for a CPU */
	TIMELINE_BLOCKED,
	TIMELINE_STATES,
};

struct timeline_span {
	uint64_t begin_ns, end_ns;
};

struct timeline;

int timeline_new(struct timeline **ret_timeline); /* 0, -ENOMEM */
void timeline_free(struct timeline *t);

/* A time during which a thread existed and its switches were recorded. 0, -ENOMEM. */
int timeline_add_life(struct timeline *t, int32_t tid, uint64_t begin_ns, uint64_t end_ns);

struct timeline_wait {
	uint64_t begin_ns, end_ns;
	uint64_t runnable_ns; /* its last part: the thread waited for a CPU */
	bool is_unknown;      /* private */
};

/* 0, -ENOMEM. */
int timeline_add_wait(struct timeline *t, int32_t tid, const struct timeline_wait *wait);

/* A time in which the state of a thread is not known. 0, -ENOMEM. */
int timeline_add_unknown(struct timeline *t, int32_t tid, uint64_t begin_ns, uint64_t end_ns);

/* Call it after all of the above, and before the functions below. */
void timeline_finish(struct timeline *t);

/* The state of a thread just before a time. */
enum timeline_state timeline_before(const struct timeline *t, int32_t tid, uint64_t ns);

/* The last wait of a thread that ended at this time or earlier. False: none is known. */
bool timeline_last_wait(const struct timeline *t, int32_t tid, uint64_t ns,
			struct timeline_wait *ret_wait);

/* Adds the ns that a thread spent in each state from a time to another. */
void timeline_sum(const struct timeline *t, int32_t tid, uint64_t from_ns, uint64_t to_ns,
		  uint64_t sums[TIMELINE_STATES]);

/*
 * Time for which suspensions by another thread blocked a running one. Counts waits that began in
 * one of them, up to their wakeup, if that came at most resume_ns after its end. stops: in the
 * order of time.
 */
uint64_t timeline_stopped(const struct timeline *t, int32_t tid, const struct timeline_span *stops,
			  size_t n, uint64_t resume_ns);

#endif
