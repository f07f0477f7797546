/*
 * Off-CPU times of threads from raw records. Switches come as in sampler/offcpu/switch_rings.h: a
 * sample with the stack, then the switch out. FORK, COMM and EXIT show which threads exist. Each
 * finished wait goes to a writer.
 */
#ifndef PROFCPU_RECORD_OFFCPU_RECORDS_H
#define PROFCPU_RECORD_OFFCPU_RECORDS_H

#include "recording/offcpu_idx.h"
#include "recording/perfdata.h"
#include "recording/perfdata_offcpu.h"
#include "sampler/offcpu/offcpu.h"
#include "unwind/unwinder.h"

/*
 * Memory for distinct callchains; or an eighth of the memory that is left, if this is less. Waits
 * with further callchains have no stack.
 */
#define RECORD_OFFCPU_STACKS_BYTES ((size_t)64 << 20)
/*
 * Memory for a thread. Threads at a time take an eighth of the memory that is left; those of
 * RECORD_OFFCPU_THREADS_MIN fit always. Further threads are not recorded.
 */
#define RECORD_OFFCPU_THREAD_BYTES (OFFCPU_THREAD_BYTES + 256)
#define RECORD_OFFCPU_THREADS_MIN 64
#define RECORD_OFFCPU_DESCRIPTORS 1024 /* schedstat files that stay open */

struct record_offcpu;

struct record_offcpu_options {
	uint64_t begin_ns; /* of the recording, CLOCK_MONOTONIC; 0: see record_offcpu_begin */
	uint64_t min_ns;   /* shorter waits are only counted */
	bool first_pids;   /* our PID namespace is the first: pids in payloads are ours */
	pid_t kthreadd;    /* parent of kernel threads, which are not recorded; 0: none here */
	const char *proc;  /* NULL: "/proc"; borrowed */
	uint64_t memory;   /* bytes that are left, which may shrink limits; 0: memory_left() */
};

/* 0 or -ENOMEM. */
int record_offcpu_new(const struct record_offcpu_options *options,
		      struct record_offcpu **ret_offcpu);
void record_offcpu_free(struct record_offcpu *o);

/*
 * Begins the recording, if begin_ns was 0. Until then records only show which threads exist, and no
 * other function does anything. Call it when switches are recorded. Polls all threads. 0, -ENOMEM,
 * the writer's.
 */
int record_offcpu_begin(struct record_offcpu *o, uint64_t begin_ns);

/* Callbacks; a non-zero result (-errno) ends the call and is returned by it. */
struct record_offcpu_writer {
	void *ctx;
	/* A finished wait: `sample` without its id, the grade of its stack, `row` without offset.
	 */
	int (*wait)(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound,
		    const struct offcpu_idx_wait *row);
	/* A time in which the state of a thread is not known, because records are missing. May be
	 * NULL. */
	int (*unknown)(void *ctx, const struct offcpu_idx_unknown *unknown);
	/* The end of a thread, or of the recording. */
	int (*thread)(void *ctx, const struct offcpu_idx_thread *thread);
	/* The first waking by a thread with this stack: `sample` without its id. *ret_off: its
	 * offset in perf.data. */
	int (*waker)(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound,
		     uint64_t *ret_off);
	/* Requests the stack of a blocked thread, for record_offcpu_add_stack. May be NULL. */
	int (*request)(void *ctx, int32_t pid, int32_t tid);
	/* Requests must be read at once, because the waits may soon be over. May be NULL. */
	void (*read_now)(void *ctx);
};
void record_offcpu_to(struct record_offcpu *o, const struct record_offcpu_writer *writer);

/* Whether waits of the thread are recorded; otherwise its stacks are not needed. */
bool record_offcpu_wants(const struct record_offcpu *o, int32_t tid);

/* Number of thread rows still to be written. */
size_t record_offcpu_threads(const struct record_offcpu *o);

/* Sets the stack of a thread that is about to leave its CPU. 0 or -ENOMEM. */
int record_offcpu_stack(struct record_offcpu *o, const struct perfdata_record *sample,
			const struct unwound *unwound);

/* Adds the stack of a blocked thread, read from outside (offcpu_add_stack). 0 or -ENOMEM. */
int record_offcpu_add_stack(struct record_offcpu *o, int32_t tid, uint64_t count,
			    const struct unwound *unwound);

/* Maps a pid of the first PID namespace to a thread id of ours. 0 or -ENOMEM. */
int record_offcpu_learn(struct record_offcpu *o, int32_t first_pid, int32_t tid);

/* Our id of the thread with this pid, if its waits are recorded; else 0. */
int32_t record_offcpu_known(const struct record_offcpu *o, int32_t first_pid);

/*
 * Adds a waking of thread tid. waker: the sample taken in the waker; flags: OFFCPU_IDX_INTERRUPT,
 * OFFCPU_IDX_SOFTIRQ. 0, -ENOMEM, the writer's.
 */
int record_offcpu_waking(struct record_offcpu *o, int32_t tid, const struct perfdata_record *waker,
			 uint8_t flags, const struct unwound *unwound);

/*
 * Applies FORK, COMM and EXIT of all events, and SWITCH_CPU_WIDE and LOST of the switches. Others
 * are ignored. Records of a round come in order of time. 0 or -ENOMEM.
 */
int record_offcpu_apply(struct record_offcpu *o, const struct perfdata_record *record);

/* Notes the last record of a CPU's switch ring; later losses are after it. 0 or -ENOMEM. */
int record_offcpu_note_record(struct record_offcpu *o, const struct perfdata_record *record);

/*
 * Records of the CPU (-1: any) are missing between its last record and time_ns. Rounds then poll
 * threads, so that the waits of those that did not move continue. 0 or -ENOMEM.
 */
int record_offcpu_lost(struct record_offcpu *o, int32_t cpu, uint64_t time_ns);

/*
 * The ring of the CPU was full at time_ns, after all rounds so far. Records since its last one may
 * be missing even if the kernel never reports it. 0 or -ENOMEM.
 */
int record_offcpu_full(struct record_offcpu *o, int32_t cpu, uint64_t time_ns);

/* Threads polled per round or mark; with more threads, each time the next ones. */
#define RECORD_OFFCPU_POLLS 4096

/* Whether threads can be polled; only then may events be off for a time. */
bool record_offcpu_can_poll(const struct record_offcpu *o);

/* Adds OFFCPU_CLOSE, OFFCPU_OPEN or OFFCPU_WHOLE. 0 or -ENOMEM. */
int record_offcpu_mark(struct record_offcpu *o, enum offcpu_kind kind, uint64_t time_ns);

/* Samples in threads that are not recorded, since the last call. */
uint64_t record_offcpu_take_others(struct record_offcpu *o);

/*
 * Polls threads for time_ns. After OFFCPU_WHOLE the following rounds poll the rest. *ret_width:
 * CPUs that all threads kept busy, each between its last two polls. 0 or -ENOMEM.
 */
int record_offcpu_poll(struct record_offcpu *o, uint64_t time_ns, double *ret_width);

/*
 * Follows the waits that began in the last window. record_offcpu_moved tells the switches in it,
 * each thread's in any order; then record_offcpu_find_waiting finds the threads and polls them.
 * Call it before the poll at the end of the window, which takes longer. record_offcpu_follow polls
 * them while they wait. *ret_waiting: threads that wait. 0 or -ENOMEM.
 */
void record_offcpu_moved(struct record_offcpu *o, int32_t tid, uint64_t time_ns, bool out);
int record_offcpu_find_waiting(struct record_offcpu *o, uint64_t time_ns, size_t *ret_waiting);
int record_offcpu_follow(struct record_offcpu *o, uint64_t time_ns, size_t *ret_waiting);

/* Ends a round: writes waits that ended before the last round. 0, -ENOMEM, the writer's. */
int record_offcpu_round(struct record_offcpu *o);

/* Ends the recording after its last round: writes all. Errors of record_offcpu_round. */
int record_offcpu_finish(struct record_offcpu *o, uint64_t end_ns);

struct record_offcpu_result {
	uint64_t waits, off_ns;         /* written */
	uint64_t short_waits, short_ns; /* below min_ns */
	uint64_t no_stack_ns;           /* of off_ns and short_ns: the begin was not recorded */
	uint64_t unknown_ns;            /* unknown state, because switches are missing */
	uint64_t unwatched_ns;          /* of unknown_ns: threads began or ended while throttled */
	uint64_t stacks_refused;        /* stacks over stacks_bytes_max */
	uint64_t threads_refused;       /* for which there was no memory */
	size_t stacks_bytes_max;        /* memory for distinct callchains */
	uint64_t life_ns;               /* of all threads together, in the recording */
	uint64_t estimated_ns;          /* of off_ns and short_ns: while throttled */
	uint64_t unsettled;             /* waits; struct offcpu_totals */
	uint64_t blocked_ns;            /* of off_ns */
	uint64_t woken_ns;              /* of blocked_ns: waits with a known waker */
};
struct record_offcpu_result record_offcpu_result(const struct record_offcpu *o);

#endif
