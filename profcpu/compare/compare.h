/*
 * Compares what a runtime's own sampler claims with what the kernel recorded in the same window.
 * Each sample gets the state that its thread had just before the sampler stopped it. Times are
 * CLOCK_MONOTONIC of the recording.
 */
#ifndef PROFCPU_COMPARE_COMPARE_H
#define PROFCPU_COMPARE_COMPARE_H

#include "profcpu/compare/claims.h"
#include "profcpu/compare/timeline.h"
#include "profcpu/managed/trace_place.h"
#include "profcpu/managed/unnamed.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <sys/types.h>

struct compare_options {
	int trace_fd; /* borrowed */
	struct trace_place_options place;
	uint64_t max_bytes; /* of the samples */
};

/* The parts of a comparison. The last ones are samples by the state of their thread. */
enum compare_part {
	COMPARE_ON_CPU,   /* ns that threads ran, by the kernel's samples */
	COMPARE_RUNNABLE, /* ns that they waited for a CPU */
	COMPARE_BLOCKED,  /* ns */
	COMPARE_CLAIMS,   /* number of samples; + enum timeline_state */
	COMPARE_PARTS = COMPARE_CLAIMS + TIMELINE_STATES,
};

/* Sum of equal stacks of a thread. */
struct compare_cell {
	uint64_t weight;        /* ns, or a number of samples */
	uint32_t thread, stack; /* of the profile */
	uint8_t part;           /* enum compare_part */
};

struct compare_thread {
	int32_t tid;
	uint32_t thread;                   /* of the profile; PROFILE_NONE: not known */
	uint64_t states[TIMELINE_STATES];  /* ns in the window */
	uint64_t samples[TIMELINE_STATES]; /* of the sampler */
	uint64_t cpu_weight;               /* of the kernel's samples */
	bool is_uncertain;                 /* its switches were not recorded whole */
};

struct compare_totals {
	uint64_t from_ns, to_ns;   /* the window: from the first to the last sample */
	int64_t clock_offset_ns;   /* clock of the trace minus that of the recording */
	uint64_t clock_error_ns;   /* at most; 0: not known, so the clocks are taken as equal */
	uint64_t samples, outside; /* outside: of managed code */
	uint64_t left_out, lost;   /* struct claims */
	uint64_t claims[TIMELINE_STATES];
	uint64_t states[TIMELINE_STATES]; /* ns of the sampled threads */
	uint64_t rounds, suspended_ns;    /* of the sampler: stops of all threads */
	uint64_t stopped_ns;              /* that running threads lost to these stops */
	uint64_t sampler_ns;              /* that the sampler itself ran */
	bool is_cut;
};

struct compare;

/* Reads the samples. 0; -ENODATA: it has none; errors of claims_read, with *err. */
int compare_new(struct profile *profile, const struct compare_options *options,
		struct compare **ret_compare, struct parse_error *err);
void compare_free(struct compare *c);

/* The process, as the recording knows it. */
pid_t compare_pid(const struct compare *c);

/* The samples, whose stacks the import names. Valid as long as c. */
struct unnamed_source compare_source(struct compare *c);

/* Take a sample on a CPU, and a wait; those of other processes are ignored. 0, -ENOMEM. */
int compare_take_cpu(struct compare *c, const struct profile_sample *sample);
int compare_take_wait(struct compare *c, const struct profile_sample *sample,
		      const struct timeline_wait *wait);
/* Takes the life of a thread. known: its switches were recorded whole. 0, -ENOMEM. */
int compare_take_life(struct compare *c, int32_t pid, int32_t tid, uint64_t begin_ns,
		      uint64_t end_ns, bool known);

/* Takes a time in which the state of a thread is not known. 0, -ENOMEM. */
int compare_take_unknown(struct compare *c, int32_t tid, uint64_t begin_ns, uint64_t end_ns);

/* Labels the samples, and sums up. Call it once, after all of the above. 0, -ENOMEM. */
int compare_finish(struct compare *c);

const struct compare_totals *compare_totals(const struct compare *c);
const struct compare_cell *compare_cells(const struct compare *c, size_t *ret_n);
const struct compare_thread *compare_threads(const struct compare *c, size_t *ret_n);

#endif
