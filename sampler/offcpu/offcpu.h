/*
 * Computes waits from switches and wakings: the length, stack and waker of each wait.
 *
 * At any time of its life a thread is in one of four states. Their times sum up exactly to its life
 * in the recording:
 * - running: from a switch in to the next switch out.
 * - blocked: from a voluntary switch out to its waking (sched_waking).
 * - runnable: from the waking, an involuntary switch out or its creation, to the switch in.
 * - unknown: records are missing. While throttled, also times that no poll covers.
 * Without recorded wakings, the end of blocked is unknown.
 *
 * The scheduler's counters (schedstat) tell how long a thread was runnable. The caller polls each
 * thread after its switches in. A finished wait is handed out at the next poll of its thread, with
 * a runnable time that makes the sum exact. Waits without a recorded waking change first, each by
 * the same time.
 *
 * While throttled, events are off between OFFCPU_CLOSE and OFFCPU_OPEN. Waits of that time are
 * estimated from the waits that began while events were on. Their sums are exact, because the
 * caller polls the scheduler's counters at each CLOSE (offcpu_add_poll). If a thread stays in one
 * wait from poll to poll, the counters show it. Such time is a stratum of its own, because few long
 * waits begin while events are on.
 *
 * Stacks are numbers of the caller. One thread uses an offcpu. Nothing is allocated per event once
 * the tables have grown.
 */
#ifndef SAMPLER_OFFCPU_OFFCPU_H
#define SAMPLER_OFFCPU_OFFCPU_H

#include "sampler/offcpu/schedstat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OFFCPU_NO_STACK UINT32_MAX
#define OFFCPU_THREADS_MAX ((size_t)1 << 20) /* offcpu_threads; the caller keeps to it */
#define OFFCPU_THREAD_BYTES 1024             /* memory for each of them, at most, without events */
#define OFFCPU_GONE_MIN 1024                /* ended threads that wait for the end of their epoch */
#define OFFCPU_QUEUE_MAX ((size_t)1 << 20)  /* events of two rounds */
#define OFFCPU_HELD_MAX ((size_t)1 << 16)   /* finished waits until the next poll */
#define OFFCPU_SHARES_MAX ((size_t)1 << 18) /* distinct threads, stacks and wakers per epoch */
#define OFFCPU_EPOCH_NS UINT64_C(5000000000) /* time after which estimates become intervals */
/*
 * Time in one wait, from poll to poll, after which its stack may be read from outside. With a
 * shorter limit the stacks would mostly be those of the longest waits.
 */
#define OFFCPU_STAY_NS UINT64_C(4000000)

enum offcpu_kind {
	OFFCPU_BEGIN,   /* an existing thread; events of threads without one are dropped */
	OFFCPU_CREATED, /* a new thread, waiting for its first CPU */
	OFFCPU_END,     /* events of the thread are dropped until its next BEGIN */
	OFFCPU_OUT,     /* stack: its own; flags: OFFCPU_PREEMPTED */
	OFFCPU_IN,
	OFFCPU_WAKING, /* tid: woken thread; by, stack: the waker */
	/*
	 * Events go off for all threads. While off: more polls, which make long waits exact. Late
	 * switches in, before events are off, show that a wait ended before its poll.
	 */
	OFFCPU_CLOSE,
	OFFCPU_OPEN,  /* events are on again */
	OFFCPU_WHOLE, /* events stay on; times are exact again. Polls follow, as after CLOSE. */
	/*
	 * Events between time_ns and until_ns may be missing. A thread's state is doubtful until
	 * its next event, or until a poll shows as many switches in as were seen.
	 */
	OFFCPU_LOST,
	OFFCPU_POLL,   /* made by offcpu_add_poll */
	OFFCPU_FOLLOW, /* made by offcpu_add_follow */
};

/* Involuntary: the record has PERF_RECORD_MISC_SWITCH_OUT_PREEMPT. */
#define OFFCPU_PREEMPTED 1

struct offcpu_event {
	uint64_t time_ns;
	uint64_t until_ns; /* of LOST */
	pid_t tid, by;
	uint32_t stack;
	uint8_t kind, flags; /* enum offcpu_kind */
};

/* From the record's flags, in profcpu/record/offcpu_records.c. */
enum offcpu_wait { OFFCPU_BLOCKED, OFFCPU_RUNNABLE };

/* A wait, or an estimate for many similar waits. */
struct offcpu_interval {
	pid_t tid, waker;       /* waker 0: unknown, or an interrupt on an idle CPU */
	uint64_t out_ns, in_ns; /* within the recording; of an estimate: the time it covers */
	uint64_t woken_ns;      /* 0: unknown, or not blocked */
	/* Their sum is in_ns - out_ns for a wait, and the estimated time for an estimate. */
	uint64_t blocked_ns, runnable_ns;
	uint64_t count;              /* waits seen; 0: none, only the time is known */
	uint32_t stack, waker_stack; /* or OFFCPU_NO_STACK */
	enum offcpu_wait wait;       /* state at the switch out */
	bool cut_begin, cut_end;     /* begins before, or ends after, the exact recording */
	bool estimated;
};

struct offcpu_totals {
	uint64_t begin_ns, end_ns; /* life in the recording: the sum of the next four times */
	uint64_t running_ns, blocked_ns, runnable_ns, unknown_ns;
	uint64_t unwatched_ns; /* of unknown: while throttled; the rest is due to lost records */
	/* Parts of blocked and runnable: */
	uint64_t estimated_ns;          /* while throttled */
	uint64_t short_ns, short_count; /* waits below min_ns, which are not intervals */
	uint64_t no_stack_ns;           /* waits whose begin was not recorded */
	/* Waits without a recorded waking and a later poll; runnable time may count as blocked. */
	uint64_t unsettled;
};

/* Each callback may be NULL. A non-zero result (-errno) ends the call and is returned by it. */
struct offcpu_listener {
	void *ctx;
	/*
	 * A wait has ended. It comes late if events are missing. Estimates come at the end of their
	 * epoch.
	 */
	int (*interval)(void *ctx, const struct offcpu_interval *interval);
	/* A thread's state is not known for a time, because records are missing. Not for estimates.
	 */
	int (*unknown)(void *ctx, pid_t tid, uint64_t from_ns, uint64_t to_ns);
	/*
	 * The begin of a wait was not recorded, so its stack is missing. The listener may read the
	 * stack from outside and pass it to offcpu_add_stack, now or later.
	 */
	int (*unseen)(void *ctx, pid_t tid);
	/* The thread or the recording ends; the last call for this thread. */
	int (*thread)(void *ctx, pid_t tid, const struct offcpu_totals *totals);
};

struct offcpu_counts {
	uint64_t intervals, estimates;
	uint64_t no_in, no_out; /* missing switches: out twice, in twice */
	uint64_t others;        /* events of threads that never began, or have ended */
	uint64_t outside;       /* events at a time when events were off */
	uint64_t late;          /* events older than those already processed */
	uint64_t overflow;      /* over a limit; events over OFFCPU_QUEUE_MAX count as LOST */
	uint64_t closed_ns;     /* time with events off */
	uint64_t doubtful;      /* threads in a doubtful state now; polls can resolve it */
};

struct offcpu;

/* Starts at begin_ns. Waits shorter than min_ns only count in the totals. 0 or -ENOMEM. */
int offcpu_new(uint64_t begin_ns, uint64_t min_ns, const struct offcpu_listener *listener,
	       struct offcpu **ret_offcpu);
void offcpu_free(struct offcpu *o);

/*
 * Adds an event, in any order within a round. 0 or -ENOMEM. Switches, wakings and polls over
 * OFFCPU_QUEUE_MAX are counted and dropped.
 */
int offcpu_add(struct offcpu *o, const struct offcpu_event *event);

/* Threads that began and whose totals the listener has not got. Each takes memory. */
size_t offcpu_threads(const struct offcpu *o);

/*
 * Adds the scheduler's counters of a thread: at its BEGIN (CREATED implies zeros), after each CLOSE
 * with the time of the CLOSE, and after WHOLE. After LOST, for late polls after WHOLE, and after
 * switches in, time_ns is the time of the read. Errors of offcpu_add.
 */
int offcpu_add_poll(struct offcpu *o, pid_t tid, uint64_t time_ns, const struct schedstat *stat);

/*
 * Adds the counters of a thread between two CLOSE, while events are off. They only tell until when
 * its sampled wait lasts. Errors of offcpu_add.
 */
int offcpu_add_follow(struct offcpu *o, pid_t tid, uint64_t time_ns, const struct schedstat *stat);

/*
 * Adds the stack of a blocked thread, read from outside while schedstat's count stayed the same. It
 * belongs to the wait with that count, which may be over by now. Such stacks are needed for waits
 * that `unseen` reports, and for all waits at the start of the recording. While throttled they are
 * also needed for threads whose count stays the same for OFFCPU_STAY_NS. Read these at once,
 * because polls are processed after short waits are over. Without a stack, the time is shared among
 * the recorded waits of its kind. 0 or -ENOMEM.
 */
int offcpu_add_stack(struct offcpu *o, pid_t tid, uint64_t count, uint32_t stack);

/* Whether offcpu_add_stack for this wait would add information, by the events processed so far. */
bool offcpu_wants_stack(const struct offcpu *o, pid_t tid, uint64_t count);

/*
 * Ends a round: all rings were read once, and no later event is older than the rounds before
 * (perf's FINISHED_ROUND). Processes older events. 0; -ENOMEM; the listener's.
 */
int offcpu_round(struct offcpu *o);

/*
 * Ends the recording: processes all events up to end_ns. Poll each thread for end_ns before. 0;
 * -ENOMEM; the listener's.
 */
int offcpu_finish(struct offcpu *o, uint64_t end_ns);

/* Time up to which earlier rounds processed events; waits of this round may have ended earlier. */
uint64_t offcpu_round_ns(const struct offcpu *o);

const struct offcpu_counts *offcpu_counts(const struct offcpu *o);

#endif
