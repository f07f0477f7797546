/*
 * While recording: what threads do while they do not run, out of raw records. Switches come as sampler/switches.h makes them, a sample with
 * the stack and then the switch out; which threads there are FORK, COMM and EXIT say. Each wait goes, when it is over, to whoever writes it.
 */
#ifndef PROFCPU_RECORD_OFFCPU_H
#define PROFCPU_RECORD_OFFCPU_H

#include "recording/offcpu_idx.h"
#include "recording/perfdata.h"
#include "recording/perfdata_offcpu.h"
#include "sampler/offcpu.h"
#include "unwind/unwinder.h"

#define RECORD_OFFCPU_STACKS_BYTES ((size_t)64 << 20) /* of distinct callchains; waits with further ones have no stack */
#define RECORD_OFFCPU_DESCRIPTORS 1024 /* of schedstat that stay open */

struct record_offcpu;

struct record_offcpu_options {
	uint64_t begin_ns; /* of the recording, CLOCK_MONOTONIC */
	uint64_t min_ns; /* shorter waits are counted only */
	bool first_pids; /* our PID namespace is the first: pids in payloads of tracepoints are ours */
	pid_t kthreadd; /* the parent of kernel threads, which are not recorded; 0: there are none in this PID namespace */
	const char *proc; /* NULL: "/proc"; borrowed */
};

/* 0, -ENOMEM. */
int record_offcpu_new(const struct record_offcpu_options *options, struct record_offcpu **ret_offcpu);
void record_offcpu_free(struct record_offcpu *o);

/* 0 or -errno, which is handed on. */
struct record_offcpu_writer {
	void *ctx;
	/* Called for each wait: `sample` without its id, how far its stack is to be trusted, and `row` without its place. */
	int (*wait)(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound, const struct offcpu_idx_wait *row);
	/* Called at the end of each thread, or of the recording. */
	int (*thread)(void *ctx, const struct offcpu_idx_thread *thread);
	/* Called for each waker's thread and stack, at its first waking: `sample` without its id. *ret_off: its place. */
	int (*waker)(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound, uint64_t *ret_off);
	/* May be NULL. The stack of this thread, if it waits now, is for record_offcpu_seen: nobody saw how its wait began. */
	int (*ask)(void *ctx, int32_t pid, int32_t tid);
	/* May be NULL. What was asked for is to be read now: it can be over soon. */
	void (*hurry)(void *ctx);
};
void record_offcpu_to(struct record_offcpu *o, const struct record_offcpu_writer *writer);

/* Whether the thread is one of those whose waits are recorded: only then its stack is of use. */
bool record_offcpu_wants(const struct record_offcpu *o, int32_t tid);

/* How many rows of threads are still to come, as of now. */
size_t record_offcpu_threads(const struct record_offcpu *o);

/* A thread is about to leave its CPU, with this stack. 0 or -ENOMEM. */
int record_offcpu_stack(struct record_offcpu *o, const struct perfdata_record *sample, const struct unwound *unwound);

/* The stack of a thread in its wait, read from outside (offcpu_seen). 0 or -ENOMEM. */
int record_offcpu_seen(struct record_offcpu *o, int32_t tid, uint64_t count, const struct unwound *unwound);

/* A pid of the first PID namespace is this thread of ours. 0 or -ENOMEM. */
int record_offcpu_learn(struct record_offcpu *o, int32_t first_pid, int32_t tid);

/* The thread of ours with that pid there, if its waits are recorded; else 0. */
int32_t record_offcpu_known(const struct record_offcpu *o, int32_t first_pid);

/* Who wakes a thread, with what stack: `waker` is the sample in its context; flags: OFFCPU_IDX_INTERRUPT, OFFCPU_IDX_SOFTIRQ. 0, -ENOMEM, the writer's. */
int record_offcpu_waking(struct record_offcpu *o, int32_t tid, const struct perfdata_record *waker, uint8_t flags,
			 const struct unwound *unwound);

/* Takes in FORK, COMM, EXIT of all events, and SWITCH_CPU_WIDE and LOST of the switches; others are ignored. In order of time within a
 * round. 0, -ENOMEM. */
int record_offcpu_apply(struct record_offcpu *o, const struct perfdata_record *record);

/* A record of the switches' rings was met: what is lost on its CPU was lost behind it. 0 or -ENOMEM. */
int record_offcpu_met(struct record_offcpu *o, const struct perfdata_record *record);

/* Records of that CPU (-1: of any) are missing between the last that was met and now. Rounds look at threads then, so that the waits of those that
 * have not moved go on. 0 or -ENOMEM. */
int record_offcpu_lost(struct record_offcpu *o, int32_t cpu, uint64_t time_ns);

/* At that time, behind all rounds so far, the ring of that CPU was full: what came there since the last record may be missing, even if none comes any more
 * with which the kernel says so. 0 or -ENOMEM. */
int record_offcpu_full(struct record_offcpu *o, int32_t cpu, uint64_t time_ns);

#define RECORD_OFFCPU_LOOKS 4096 /* threads that are looked at in a round, or at a mark: of more some, the next time others */

/* Whether threads can be looked at: only then may events be off for a time. */
bool record_offcpu_may_look(const struct record_offcpu *o);

/* OFFCPU_CLOSE, OFFCPU_OPEN, OFFCPU_WHOLE. 0 or -ENOMEM. */
int record_offcpu_tell(struct record_offcpu *o, enum offcpu_kind kind, uint64_t time_ns);

/* How many samples record_offcpu_met has seen that were in the context of threads that nobody asks for, since it was asked last. */
uint64_t record_offcpu_others(struct record_offcpu *o);

/* Looks at threads, for that time; behind OFFCPU_WHOLE the rounds that follow look at the rest. *ret_width: how many CPUs all threads kept busy, each
 * between the last two looks at it. 0 or -ENOMEM. */
int record_offcpu_look(struct record_offcpu *o, uint64_t time_ns, double *ret_width);

/* A round is over: hands over waits that ended before the round before. 0, -ENOMEM, the writer's. */
int record_offcpu_round(struct record_offcpu *o);

/* The recording is over: all rounds were taken in. Hands over all. As record_offcpu_round. */
int record_offcpu_finish(struct record_offcpu *o, uint64_t end_ns);

struct record_offcpu_result {
	uint64_t waits, off_ns; /* that were handed over */
	uint64_t short_waits, short_ns; /* below min_ns */
	uint64_t no_stack_ns; /* of off_ns and short_ns: began before the recording, or switches were lost */
	uint64_t unknown_ns; /* neither on nor off a CPU for certain: as switches were lost, */
	uint64_t unwatched_ns; /* and of that, as threads began or ended while events were off at times */
	uint64_t stacks_refused; /* how often a stack could not be kept, over RECORD_OFFCPU_STACKS_BYTES */
	uint64_t life_ns; /* of all threads together, in the recording */
	uint64_t estimated_ns; /* of off_ns and short_ns: while events were off at times */
	uint64_t blocked_ns, woken_ns; /* of off_ns; and of that what ended by a waker that is known */
};
struct record_offcpu_result record_offcpu_result(const struct record_offcpu *o);

#endif
