/*
 * Reads and writes offcpu.idx of a recording: data about waits and threads that perf.data cannot
 * hold. Each wait has a row, which names the place of its offcpu-time sample in perf.data
 * (perfdata_offcpu.h). Each thread has a row, written at its end. A wait's row is on disk before
 * its sample. The file format is that of idx_file.h. A thread takes two rows, as does a wait with
 * an end of its own.
 */
#ifndef RECORDING_OFFCPU_IDX_H
#define RECORDING_OFFCPU_IDX_H

#include "recording/idx_file.h"

#include <stddef.h>
#include <stdint.h>

/* Largest time and duration, so that sums do not overflow. */
#define OFFCPU_IDX_NS_MAX ((uint64_t)1 << 60)

enum offcpu_idx_flags {
	/* The thread was preempted, or had just been created. */
	OFFCPU_IDX_PREEMPTED = 1,
	OFFCPU_IDX_CUT_BEGIN = 2,  /* it began before the exactly recorded time */
	OFFCPU_IDX_CUT_END = 4,    /* it continued after the exactly recorded time */
	OFFCPU_IDX_ESTIMATED = 8,  /* it stands for similar waits while events were off at times */
	OFFCPU_IDX_INTERRUPT = 16, /* an interrupt woke the thread, not another thread */
	/*
	 * A softirq woke it: that of the interrupt whose entry is in the waker's stack, if there is
	 * one.
	 */
	OFFCPU_IDX_SOFTIRQ = 32,
	OFFCPU_IDX_FLAGS = 63,
};

struct offcpu_idx_wait {
	uint64_t file_off; /* place of its sample in perf.data */
	/* Place of an earlier offcpu-waker sample with the waker's callchain; 0: unknown. */
	uint64_t waker_off;
	uint64_t woken_ns;    /* CLOCK_MONOTONIC; 0: unknown, or no wakeup was needed */
	uint64_t runnable_ns; /* part of the wait (the sample's period); the rest is blocked */
	uint64_t count;       /* waits that it stands for; 0: only their total time is known */
	/*
	 * CLOCK_MONOTONIC; 0: the time of its sample. Otherwise the sample is later, because the
	 * end became known late.
	 */
	uint64_t end_ns;
	int32_t waker; /* tid; 0: unknown, or not a thread */
	uint8_t flags; /* enum offcpu_idx_flags */
};

/*
 * A thread's lifetime in the recording: the sum of running, blocked, runnable and unknown time
 * (struct offcpu_totals of sampler/offcpu/offcpu.h).
 */
struct offcpu_idx_thread {
	int32_t tid, pid;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t running_ns, blocked_ns, runnable_ns, unknown_ns;
	/* Parts of blocked and runnable. */
	uint64_t short_ns, short_count, no_stack_ns, estimated_ns;
};

/* A time of a thread in which its state is not known, because records were lost. */
struct offcpu_idx_unknown {
	int32_t tid;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
};

enum offcpu_idx_kind {
	OFFCPU_IDX_WAIT = 1,
	OFFCPU_IDX_THREAD = 2,
	OFFCPU_IDX_THREAD_REST = 3, /* directly after its OFFCPU_IDX_THREAD */
	OFFCPU_IDX_WAIT_END = 4,    /* directly after its OFFCPU_IDX_WAIT */
	OFFCPU_IDX_UNKNOWN = 5,
};

/* A row on disk. */
struct offcpu_idx_row {
	uint8_t kind, flags;
	uint16_t check; /* see idx_file.h */
	/*
	 * The waker; for a thread the tid in the first row, the pid in the second; for an unknown
	 * time the tid.
	 */
	int32_t id;
	/*
	 * Members in the order above: a thread's in five and five, a wait's in five and its end,
	 * two of an unknown time.
	 */
	uint64_t v[5];
};
_Static_assert(sizeof(struct offcpu_idx_row) == 48, "on-disk layout");

/* Like idx_file_begin. */
int offcpu_idx_begin(int fd, uint64_t identity, struct idx_file *ret_file);

/* Each fills out; put_wait returns the number of rows: 1, or 2 with an end. */
size_t offcpu_idx_put_wait(const struct offcpu_idx_wait *wait, struct offcpu_idx_row out[2]);
struct offcpu_idx_row offcpu_idx_put_unknown(const struct offcpu_idx_unknown *unknown);
void offcpu_idx_put_thread(const struct offcpu_idx_thread *thread, struct offcpu_idx_row out[2]);

struct offcpu_idx {
	struct offcpu_idx_wait *waits; /* sorted by file_off */
	size_t nwaits;
	/* Sorted by tid, then begin_ns, because ids are reused. */
	struct offcpu_idx_thread *threads;
	size_t nthreads;
	struct offcpu_idx_unknown *unknowns; /* in the order of the file */
	size_t nunknowns;
	struct idx_file_state file;
};

/* Reads the file from fd. Errors as idx_file_read. */
int offcpu_idx_read(int fd, struct offcpu_idx *ret_idx, struct parse_error *err);
/* memory: bytes that are left, from which the rows take a part. */
int offcpu_idx_read_within(int fd, uint64_t memory, struct offcpu_idx *ret_idx,
			   struct parse_error *err);
void offcpu_idx_free(struct offcpu_idx *idx);

/* Returns the wait of the offcpu-time sample at a place in perf.data, or NULL. */
const struct offcpu_idx_wait *offcpu_idx_find(const struct offcpu_idx *idx, uint64_t file_off);

#endif
