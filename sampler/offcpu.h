/*
 * What threads do while they do not run: out of switches and wakings comes each wait, with its length, its stack and who ended it.
 *
 * A thread is at any time of its life in the recording either
 *   running   from a switch in to the next switch out,
 *   blocked   from a switch out by its own will until it is woken (sched_waking),
 *   runnable  from there, or from a switch out that was not its will, or from its creation, to the switch in, or
 *   unknown   where records are missing; while events are off at times, where no look tells, as of a thread's last moments.
 * The four make up its life without rest. Where wakings are not recorded, blocked ends with the switch in.
 *
 * Events may be off for a time (shedding): OFFCPU_CLOSE and OFFCPU_OPEN say when. What the waits of such a time were is estimated from
 * those that began while events were on, and their sums are exact: they come from what the scheduler counts, which the caller looks
 * up at each CLOSE (offcpu_look). Long waits, those in which a thread stayed from one look to the next, are told by that count: their time is
 * a stratum of its own, as few of them begin while events are on.
 *
 * Stacks are numbers of the caller's. One thread uses an offcpu; nothing is allocated for each event once tables have grown.
 */
#ifndef SAMPLER_OFFCPU_H
#define SAMPLER_OFFCPU_H

#include "sampler/schedstat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OFFCPU_NO_STACK UINT32_MAX
#define OFFCPU_THREADS_MAX ((size_t)1 << 20) /* at once */
#define OFFCPU_QUEUE_MAX ((size_t)1 << 20)   /* events of two rounds */
#define OFFCPU_SHARES_MAX ((size_t)1 << 18)  /* distinct threads, stacks and wakers of an epoch */
#define OFFCPU_EPOCH_NS UINT64_C(5000000000) /* so often estimates become intervals */
#define OFFCPU_STAY_NS UINT64_C(4000000) /* from look to look: of a wait that was met for so long the stack may be read from outside. Of shorter ones
					  * it would mostly be read of those that last longest */

enum offcpu_kind {
	OFFCPU_BEGIN,  /* a thread that there is; one without is none of ours, and what comes of it is dropped */
	OFFCPU_CREATED, /* a thread that was just created, and waits for its first CPU */
	OFFCPU_END,    /* what comes of it until it begins again is dropped */
	OFFCPU_OUT,    /* stack: its own; flags: OFFCPU_PREEMPTED */
	OFFCPU_IN,
	OFFCPU_WAKING, /* tid: who is woken; by, stack: who wakes */
	OFFCPU_CLOSE,  /* from now on events are off, for all threads; again while they are: more looks, which make waits of that length exact */
	OFFCPU_OPEN,   /* from now on they are on again */
	OFFCPU_WHOLE,  /* they stay on: what follows is exact again. Looks follow it as they follow CLOSE */
	OFFCPU_LOST,   /* between time_ns and until_ns events may be missing: a thread's state is doubtful from then on, to its next event or to a
			* look that finds that it has come to a CPU as often as was seen */
	OFFCPU_LOOK,   /* what offcpu_look makes */
};

#define OFFCPU_PREEMPTED 1 /* it did not want to wait: prev_state is R, or PERF_RECORD_MISC_SWITCH_OUT_PREEMPT */

struct offcpu_event {
	uint64_t time_ns;
	uint64_t until_ns; /* of LOST */
	pid_t tid, by;
	uint32_t stack;
	uint8_t kind, flags; /* enum offcpu_kind */
};

enum offcpu_wait { OFFCPU_BLOCKED, OFFCPU_RUNNABLE };

/* A wait, or the estimate of many that were alike. */
struct offcpu_interval {
	pid_t tid, waker;       /* waker 0: not known, or an idle CPU's interrupt */
	uint64_t out_ns, in_ns; /* within the recording; of an estimate: the time that it is for */
	uint64_t woken_ns;      /* 0: not known, or in no need of it */
	uint64_t blocked_ns, runnable_ns; /* of a wait seen whole their sum is in_ns - out_ns; of an estimate what they stand for */
	uint64_t count;         /* of waits that were seen; 0: none was, only their time is known */
	uint32_t stack, waker_stack; /* or OFFCPU_NO_STACK */
	enum offcpu_wait wait;  /* why it went off its CPU */
	bool cut_begin, cut_end; /* it began before, or goes on behind, what was recorded exactly */
	bool estimated;
};

struct offcpu_totals {
	uint64_t begin_ns, end_ns; /* of its life in the recording, which is the sum of the next four */
	uint64_t running_ns, blocked_ns, runnable_ns, unknown_ns;
	uint64_t unwatched_ns; /* of unknown: while events were off at times; the rest is where records are missing */
	uint64_t estimated_ns; /* of blocked and runnable: while events were off at times */
	uint64_t short_ns, short_count; /* of blocked and runnable: waits below min_ns, which are no intervals */
	uint64_t no_stack_ns; /* of blocked and runnable: nobody saw how they began */
};

/* Each may be NULL; non-zero (-errno) ends the call and is handed on. */
struct offcpu_listener {
	void *ctx;
	/* As their ends become known, at offcpu_done: mostly at once, late where events are missing; estimates when their epoch is over. */
	int (*interval)(void *ctx, const struct offcpu_interval *interval);
	/* As events were missing nobody saw how the wait began in which this thread may be. Who can read its stack from outside may answer with
	 * offcpu_seen, now or later; else it has none. */
	int (*unseen)(void *ctx, pid_t tid);
	/* At the end of a thread or of the recording; its last call. */
	int (*thread)(void *ctx, pid_t tid, const struct offcpu_totals *totals);
};

struct offcpu_counts {
	uint64_t intervals, estimates;
	uint64_t no_in, no_out; /* switches that are missing: out twice, in twice */
	uint64_t others;  /* events of threads that never began, or had ended */
	uint64_t outside; /* while events were said to be off */
	uint64_t late;    /* older than what was dealt with */
	uint64_t overflow; /* over one of the limits; of events over OFFCPU_QUEUE_MAX the time is as that of LOST */
	uint64_t closed_ns; /* how long events were off */
	uint64_t doubtful; /* threads whose state is now: looks are of use */
};

struct offcpu;

/* From begin_ns on. Waits shorter than min_ns are only in the totals. 0 or -ENOMEM. */
int offcpu_new(uint64_t begin_ns, uint64_t min_ns, const struct offcpu_listener *listener, struct offcpu **ret_offcpu);
void offcpu_free(struct offcpu *o);

/* Takes an event, in any order within a round. 0; -ENOMEM; over OFFCPU_QUEUE_MAX it is counted and dropped, unless it is
 * of all threads or of a thread's life. */
int offcpu_add(struct offcpu *o, const struct offcpu_event *event);

/* What the scheduler says of a thread, at its BEGIN (of one CREATED it is 0) and then after each CLOSE, for whose time it is taken; after WHOLE
 * for its time, or later at the time at which it was read; and behind LOST at that. As offcpu_add. */
int offcpu_look(struct offcpu *o, pid_t tid, uint64_t time_ns, const struct schedstat *stat);

/*
 * The stack of a thread that waits, read from outside while schedstat's count was the same before and after: so it is of the wait that
 * goes on as long as that count, or that went on when it was read and is over. For those that `unseen` asks for, and at the recording's begin for
 * all that wait then: of them no switch out will be seen. While events are off at times for those with which the caller finds the same count for
 * OFFCPU_STAY_NS: it has to read them at once, as looks are dealt with when short waits are over. Where none comes the time is taken to be of the
 * waits of its kind that were seen. 0 or -ENOMEM.
 */
int offcpu_seen(struct offcpu *o, pid_t tid, uint64_t count, uint32_t stack);

/* Whether offcpu_seen for the wait of a thread with this count would tell something, as far as events are dealt with. */
bool offcpu_wants(const struct offcpu *o, pid_t tid, uint64_t count);

/* All rings were read once: no event is to come that is older than any of the rounds before (perf's FINISHED_ROUND). Deals with what is
 * older. 0; -ENOMEM; the listener's. */
int offcpu_round(struct offcpu *o);

/* The end of the recording; a last look at each thread, for end_ns, goes before it. Deals with all that there is, up to end_ns. 0; -ENOMEM; the
 * listener's. */
int offcpu_finish(struct offcpu *o, uint64_t end_ns);

/* How far it is: the time of the event that was dealt with last. */
uint64_t offcpu_done(const struct offcpu *o);

const struct offcpu_counts *offcpu_counts(const struct offcpu *o);

#endif
