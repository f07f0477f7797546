/*
 * While recording: stacks are unwound between the rings and perf.data, so that neither the disk nor memory ever holds the copies of
 * stacks. Records of a round are put in order of time, so that a process's maps are known before its samples are met; samples leave with
 * whole callchains and without registers and stack. What needs code that is not known yet waits in bounded memory.
 */
#ifndef PROFCPU_RECORD_UNWIND_H
#define PROFCPU_RECORD_UNWIND_H

#include "profcpu/record_offcpu.h"
#include "recording/perfdata_writer.h"
#include "sampler/sampler.h"
#include "unwind/copy_size.h"
#include "unwind/unwinder.h"

#define RECORD_UNWIND_WAITING_BYTES ((size_t)32 << 20) /* samples that wait */
#define RECORD_UNWIND_STRANGERS_MAX 1024 /* wakers' processes that are no targets; of further ones the maps are not known */
#define RECORD_UNWIND_WAITING_NS 1000000000ULL /* and how long they do */

/* Of which samples registers and stack are kept in perf.data. */
enum keep_stacks {
	KEEP_STACKS_NONE,
	KEEP_STACKS_FAILED, /* whose stack is truncated or guessed */
	KEEP_STACKS_ALL,
};

/* "none", "failed", "all". 0 or -EINVAL. */
int keep_stacks_parse(const char *text, enum keep_stacks *ret_keep);

struct record_unwind;

struct record_unwind_options {
	struct opener *opener; /* borrowed */
	enum keep_stacks keep;
	uint32_t stack_bytes; /* that samples copy to begin with */
	bool stack_fixed; /* and always */
	bool read_code; /* of what processes compile while they run, in their memory */
	size_t frames_max; /* struct unwinder_options */
	const struct sampler_opened *opened; /* borrowed for the call */
	size_t nopened;
	struct record_offcpu *offcpu; /* borrowed: gets what it needs; the last of opened are then the switches. NULL: there are none */
	bool wakings; /* behind the switches are the wakings in opened, */
	uint32_t waking_pid_offset; /* of sched_payload_waking */
	/* What is to be known of a process that is none of the targets, as records with times 0. 0 or -errno. NULL: all are targets. */
	int (*meet)(void *ctx, int32_t pid, int (*take)(void *ctx, const void *data, size_t len), void *take_ctx);
	void *meet_ctx;
	const char *proc; /* with offcpu: NULL: "/proc"; borrowed */
	uint64_t identity; /* of the recording, as struct idx_file has it */
	int idx_fd; /* the empty samples.idx; taken, also where it fails */
	int offcpu_idx_fd; /* the same of offcpu.idx; with offcpu, else it is not looked at */
};

/* 0, -ENOMEM, -errno of writing samples.idx or offcpu.idx. */
int record_unwind_new(const struct record_unwind_options *options, struct record_unwind **ret_unwind);
void record_unwind_free(struct record_unwind *u);

/* An event as it is in perf.data: without what is left out of its samples. */
struct perf_event_attr record_unwind_attr(const struct record_unwind *u, const struct perf_event_attr *opened);

/* As of struct sampler_listener; records are looked at by the end of the round. 0 or -errno. */
int record_unwind_records(struct record_unwind *u, const void *data, size_t len);
int record_unwind_event_id(struct record_unwind *u, size_t event, uint64_t id);
int record_unwind_switches_id(struct record_unwind *u, uint64_t id); /* the same, of the switches */

/* Unwinds what came in this round and hands it to the writer. end_ns: the recording ended then, nothing waits any longer; 0: it goes on. 0 or
 * -errno. */
int record_unwind_round(struct record_unwind *u, struct perfdata_writer *w, uint64_t end_ns);

/* CPU time so far that the records of switches and wakings took, and no others: what threads that wait have on their stacks, answers of processes. */
uint64_t record_unwind_switches_ns(const struct record_unwind *u);

/* How much samples should copy of their stacks from now on. */
uint32_t record_unwind_stack_bytes(const struct record_unwind *u);

/* It cannot be changed: this much is copied. */
void record_unwind_keep_stack_bytes(struct record_unwind *u, uint32_t bytes);

struct record_unwind_stats {
	struct unwinder_stats unwinder;
	uint64_t waited; /* samples that had to wait */
	uint64_t hurried; /* of those: that could not wait any longer */
	uint64_t damaged; /* records that made no sense */
	uint64_t refused; /* threads that waited already, whose stack may not be read, */
	uint64_t dropped; /* or was not, as there are too many */
};
struct record_unwind_stats record_unwind_stats(const struct record_unwind *u);

#endif
