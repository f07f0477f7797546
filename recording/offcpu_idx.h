/*
 * offcpu.idx of a recording: what perf.data has no place for of the time that threads did not run. Rows of two kinds: of each wait, by the
 * place of its offcpu-time sample in perf.data (perfdata_offcpu.h), and of each thread, at its end. A wait's row is on the disk before its
 * sample. The file as idx_file.h has it; a thread takes two rows, and so does a wait with an end of its own.
 */
#ifndef RECORDING_OFFCPU_IDX_H
#define RECORDING_OFFCPU_IDX_H

#include "recording/idx_file.h"

#include <stddef.h>
#include <stdint.h>

#define OFFCPU_IDX_NS_MAX ((uint64_t)1 << 60) /* of times and lengths: so many of them can be added up */

enum offcpu_idx_flags {
	OFFCPU_IDX_PREEMPTED = 1, /* it did not want to wait: it went off its CPU as others wanted it, or had just been created */
	OFFCPU_IDX_CUT_BEGIN = 2, /* it began before what was recorded exactly */
	OFFCPU_IDX_CUT_END = 4, /* it went on behind that */
	OFFCPU_IDX_ESTIMATED = 8, /* of many that were alike, while events were off at times */
	OFFCPU_IDX_INTERRUPT = 16, /* no thread woke it, an interrupt did */
	OFFCPU_IDX_SOFTIRQ = 32, /* woken by what an interrupt had left to be done: its own, if its entry is in the waker's stack */
	OFFCPU_IDX_FLAGS = 63,
};

struct offcpu_idx_wait {
	uint64_t file_off; /* of its sample in perf.data */
	uint64_t waker_off; /* of an offcpu-waker sample before it, which has the waker's callchain; 0: not known */
	uint64_t woken_ns; /* CLOCK_MONOTONIC; 0: not known, or in no need of it */
	uint64_t runnable_ns; /* of its time, which is the sample's period; the rest is blocked */
	uint64_t count; /* of waits that it stands for; 0: none was seen, only their time is known */
	uint64_t end_ns; /* CLOCK_MONOTONIC; 0: the time of its sample, which is later where the end became known only then */
	int32_t waker; /* tid; 0: not known, or no thread */
	uint8_t flags; /* enum offcpu_idx_flags */
};

/* A thread's life in the recording, which is the sum of running, blocked, runnable and unknown (struct offcpu_totals of sampler/offcpu.h). */
struct offcpu_idx_thread {
	int32_t tid, pid;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t running_ns, blocked_ns, runnable_ns, unknown_ns;
	uint64_t short_ns, short_count, no_stack_ns, estimated_ns; /* of blocked and runnable */
};

enum offcpu_idx_kind {
	OFFCPU_IDX_WAIT = 1,
	OFFCPU_IDX_THREAD = 2,
	OFFCPU_IDX_THREAD_REST = 3, /* right behind its OFFCPU_IDX_THREAD */
	OFFCPU_IDX_WAIT_END = 4, /* right behind its OFFCPU_IDX_WAIT */
};

/* As on the disk. */
struct offcpu_idx_row {
	uint8_t kind, flags;
	uint16_t check; /* of idx_file.h */
	int32_t id; /* the waker; of a thread first its tid, then its pid */
	uint64_t v[5]; /* in the order above; of a thread five and five, of a wait five and its end */
};
_Static_assert(sizeof(struct offcpu_idx_row) == 48, "on-disk layout");

/* As idx_file_begin. */
int offcpu_idx_begin(int fd, uint64_t identity, struct idx_file *ret_file);

/* Gives how many rows it is: 1, with an end 2. */
size_t offcpu_idx_put_wait(const struct offcpu_idx_wait *wait, struct offcpu_idx_row out[2]);
void offcpu_idx_put_thread(const struct offcpu_idx_thread *thread, struct offcpu_idx_row out[2]);

struct offcpu_idx {
	struct offcpu_idx_wait *waits; /* by file_off */
	size_t nwaits;
	struct offcpu_idx_thread *threads; /* by tid, then begin_ns: an id may be used again */
	size_t nthreads;
	struct idx_file_state file;
};

/* Reads it from fd, as idx_file_read. */
int offcpu_idx_read(int fd, struct offcpu_idx *ret_idx, struct parse_error *err);
void offcpu_idx_free(struct offcpu_idx *idx);

/* Of the offcpu-time sample at a place, or NULL. */
const struct offcpu_idx_wait *offcpu_idx_find(const struct offcpu_idx *idx, uint64_t file_off);

#endif
