/*
 * Unwinds stacks while recording, between the rings and perf.data, so that copies of stacks never
 * fill memory or disk. Records of a round are sorted by time, so that mappings precede samples.
 * Samples leave with whole callchains and without registers and stack. Samples that need unknown
 * code are deferred in bounded memory.
 */
#ifndef PROFCPU_RECORD_UNWIND_H
#define PROFCPU_RECORD_UNWIND_H

#include "profcpu/record/offcpu_records.h"
#include "profcpu/record/waker_processes.h"
#include "recording/perfdata_writer.h"
#include "sampler/sampler.h"
#include "unwind/copy_size.h"
#include "unwind/unwinder.h"

/* Memory for deferred samples; or an eighth of the memory that is left, if this is less. */
#define RECORD_UNWIND_DEFERRED_BYTES ((size_t)32 << 20)
#define RECORD_UNWIND_DEFERRED_NS 1000000000ULL /* longest deferral */
/* Longest wait in a round for the state of processes of wakers. */
#define RECORD_UNWIND_WAKER_WAIT_NS 5000000ULL

/* Samples that keep registers and stack in perf.data. */
enum keep_stacks {
	KEEP_STACKS_NONE,
	KEEP_STACKS_FAILED, /* those with a truncated or guessed stack */
	KEEP_STACKS_ALL,
};

/* "none", "failed", "all". 0 or -EINVAL. */
int keep_stacks_parse(const char *text, enum keep_stacks *ret_keep);

struct record_unwind;

struct record_unwind_options {
	struct opener *opener; /* borrowed */
	enum keep_stacks keep;
	uint32_t stack_bytes; /* initial size of copied stacks */
	bool stack_fixed;     /* the size is constant */
	/*
	 * 32-bit programs may be sampled. Their samples keep registers and stack, and are unwound
	 * afterwards. This costs each other sample 16 bytes.
	 */
	bool keep_32bit;
	bool read_code;    /* reads JIT-compiled code from the memory of processes */
	size_t frames_max; /* struct unwinder_options */
	uint64_t memory;   /* likewise */
	const struct sampler_opened *opened; /* borrowed for the call */
	size_t nopened;
	/* Takes switches and wakings; borrowed. The switches are then the last of `opened`, or the
	 * last but one with wakings. NULL: none. */
	struct record_offcpu *offcpu;
	bool wakings;                    /* wakings follow the switches in `opened` */
	uint32_t waking_pid_offset;      /* for sched_payload_waking */
	waker_processes_read read_waker; /* NULL: all processes are targets */
	struct sampler_synthesis synthesis;
	uint64_t waker_wait_ns; /* longest wait in a round for the state of such processes */
	const char *proc;       /* with offcpu: NULL: "/proc"; borrowed */
	uint64_t identity;      /* of the recording, as in struct idx_file */
	int idx_fd;             /* the empty samples.idx; taken, also on failure */
	int offcpu_idx_fd;      /* the empty offcpu.idx, with offcpu; taken likewise */
};

/* 0, -ENOMEM, -errno of writing samples.idx or offcpu.idx. */
int record_unwind_new(const struct record_unwind_options *options,
		      struct record_unwind **ret_unwind);
void record_unwind_free(struct record_unwind *u);

/* The attributes in perf.data, without the fields that are removed from samples. */
struct perf_event_attr record_unwind_attr(const struct record_unwind *u,
					  const struct perf_event_attr *opened);

/* Callbacks of struct sampler_listener. Records are processed at the end of the round. 0 or -errno.
 */
int record_unwind_records(struct record_unwind *u, const void *data, size_t len);
int record_unwind_event_id(struct record_unwind *u, size_t event, uint64_t id);
int record_unwind_switches_id(struct record_unwind *u, uint64_t id); /* for the event of switches */

/*
 * Unwinds the samples of this round and writes them. end_ns: the recording ended then, so nothing
 * is deferred; 0: it continues. 0 or -errno.
 */
int record_unwind_round(struct record_unwind *u, struct perfdata_writer *w, uint64_t end_ns);

/* CPU time so far for records of switches and wakings only. */
uint64_t record_unwind_switches_cpu_ns(const struct record_unwind *u);

/* Wanted size of copied stacks, in bytes. */
uint32_t record_unwind_stack_bytes(const struct record_unwind *u);

/* Fixes the size, because it cannot be changed; limited: for lack of descriptors. */
void record_unwind_keep_stack_bytes(struct record_unwind *u, uint32_t bytes, bool limited);

/* The part of a sample with ARCH_PERF_REGS that is unwound. last: as in struct unwinder_sample. */
struct unwinder_sample record_unwind_sample(const struct perfdata_record *record, bool last);

struct record_unwind_stats {
	struct unwinder_stats unwinder;
	uint64_t waited;        /* deferred samples */
	uint64_t unwound_early; /* of these: unwound before their code was known */
	uint64_t damaged;       /* invalid records */
	uint64_t refused;       /* blocked threads whose stack may not be read */
	uint64_t dropped;       /* blocked threads whose stack was not read, too many or too slow */
	struct recording_limits limits; /* those of the unwinder included */
};
struct record_unwind_stats record_unwind_stats(const struct record_unwind *u);

#endif
