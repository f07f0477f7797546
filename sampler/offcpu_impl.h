/* What the parts of offcpu share: the order of events and the states of threads (offcpu.c), estimates (offcpu_estimate.c). */
#ifndef SAMPLER_OFFCPU_IMPL_H
#define SAMPLER_OFFCPU_IMPL_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "sampler/offcpu.h"

enum offcpu_state {
	OFFCPU_UNSURE, /* the first event tells what it was before */
	OFFCPU_RUNNING,
	OFFCPU_WAITING,
};

/* How a wait began, and how far it is. */
struct offcpu_open {
	uint64_t out_ns, woken_ns;
	uint32_t stack, waker_stack;
	pid_t waker;
	uint8_t wait; /* enum offcpu_wait */
	bool cut_begin;
};

struct offcpu_waking {
	uint64_t time_ns;
	uint32_t stack;
	pid_t by;
};

/* A wait that is over, and of which the stack may still come. */
struct offcpu_stay {
	uint64_t count, ns; /* schedstat's; from look to look */
};
#define OFFCPU_STAYS 4 /* of a thread: those of the rounds that an answer takes */

/* What was seen of a thread while events were on, between two looks. */
struct offcpu_window {
	bool seen;            /* a switch of it */
	uint64_t ins, on_ns;
	bool began_waiting;   /* the first switch was one in, */
	uint64_t first_in_ns; /* so long after the window's begin, */
	struct offcpu_waking woken; /* by this one; time_ns 0: not known */
	bool waits;           /* at its end it was in a wait that began in it: */
	struct offcpu_open wait;
	uint64_t wait_ns; /* and so much of it was seen; 0: it began while all was exact, and is no sample of anything */
};

struct offcpu_thread {
	pid_t tid;
	uint8_t state; /* enum offcpu_state */
	bool ended, looked; /* looked: base is of a look */
	uint64_t since_ns;  /* of the state; of a wait: that part of it which is not accounted for yet */
	struct offcpu_open open; /* OFFCPU_WAITING */
	struct offcpu_waking waking; /* the last while it did not wait */
	struct offcpu_totals totals;
	struct schedstat base; /* at base_ns: up to there everything is accounted for, or owed */
	uint64_t base_ns;
	struct schedstat latest; /* of a later look, while all is exact */
	bool looked_again;
	bool counted; /* count: how often it has come to a CPU in its life, as far as was seen */
	uint64_t count;
	uint64_t doubt_ns; /* from then on its state is doubtful, as events are missing; 0: it is not */
	/* While events are off at times */
	struct offcpu_window now, last; /* the one that goes on; the one before the last mark */
	bool carried; /* at base_ns it was in the wait `carry`, */
	struct offcpu_open carry;
	uint64_t carry_ns; /* so far */
	bool carry_sample; /* it began in a window */
	uint64_t stayed_ns; /* in a wait from look to look that is not carried */
	struct offcpu_stay stays[OFFCPU_STAYS]; /* those before it; ns 0: none */
	uint8_t next_stay;
	uint32_t seen_stack; /* offcpu_seen, of the wait behind the switch in that was this one of all: */
	uint64_t seen_count;
	/* since the epoch began, what is to be shared out: [1] waits in which it stayed from look to look, [0] all others */
	uint64_t owed_ns[2];
	uint64_t owed_runnable_ns; /* of both */
	uint64_t exact_run_ns, exact_runnable_ns; /* of totals, at the last mark */
	uint64_t ahead_ns; /* that it ran more than there was time between looks: the kernel's word for the time before was late */
	struct {
		bool due[2];
		uint64_t seen_ns[2], cut_ns[2], given_ns[2]; /* shares: their sum, those dealt with, and what these got */
		uint64_t seen; /* waits, of [0] */
		uint64_t blocked_ns, runnable_ns, count; /* of shares after that */
		uint64_t cut_blocked, cut_runnable, gave_blocked, gave_runnable;
	} settle;
};

/* What was seen of waits that are alike. */
struct offcpu_share {
	uint32_t thread;
	uint32_t stack, waker_stack;
	pid_t waker;
	uint8_t wait;
	bool stayed, is_short, settled;
	uint64_t count, blocked_ns, runnable_ns;
};

struct offcpu_queued {
	struct offcpu_event event;
	struct schedstat look; /* of OFFCPU_LOOK */
	uint64_t order; /* of those of one time */
};

struct offcpu {
	struct offcpu_listener listener;
	uint64_t begin_ns, min_ns;
	struct offcpu_counts counts;
	VEC(struct offcpu_queued) queue;
	uint64_t newest_ns, horizon_ns, done_ns;
	uint64_t lost_until_ns; /* up to then events may be missing */
	uint64_t over_from_ns, over_until_ns; /* times of those for which the queue had no room; over_until_ns 0: there are none */
	uint64_t order;
	struct hashmap tids; /* tid -> index of threads, of the last with that number */
	VEC(struct offcpu_thread) threads;
	VEC(uint32_t) free;
	VEC(uint32_t) gone; /* ended, and estimates are to come */
	/* Shedding */
	bool open, estimating, whole; /* whole: exact again, and looks for the time before are to come */
	bool wakings;              /* are recorded */
	uint64_t open_ns, mark_ns; /* of the last OPEN, of the last CLOSE or WHOLE */
	uint64_t window_ns;        /* between these two */
	double cycle_ns;           /* from mark to mark, on average */
	uint64_t epoch_ns;
	VEC(struct offcpu_share) shares;
	struct hashmap share_of; /* hash of a share's key -> its index + 1 */
};

/* Counters of the kernel's that it may tell late, so that what was seen since is more than they grew. */
static inline uint64_t offcpu_less(uint64_t of, uint64_t by)
{
	return of > by ? of - by : 0;
}

/* offcpu.c: hands on a wait, or counts it as short. */
int offcpu_emit(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_interval *interval);
/* offcpu.c: its totals to the listener, its place to others. */
int offcpu_release(struct offcpu *o, uint32_t thread);
/* offcpu.c: how a wait from out_ns to in_ns divides. */
void offcpu_divide(const struct offcpu_open *open, uint64_t out_ns, uint64_t in_ns, uint64_t *ret_blocked, uint64_t *ret_runnable);

/* offcpu.c: accounts for what a thread does up to a time from which on it is not exact, or it is not there, any more. */
int offcpu_end_exact(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns, bool cut);

/* What nobody saw, as events are off at times, and no look tells. */
static inline void offcpu_unwatched(struct offcpu_thread *t, uint64_t ns)
{
	t->totals.unknown_ns += ns;
	t->totals.unwatched_ns += ns;
}

/* offcpu_estimate.c: the marks, a look after one of them, and a wait that was seen whole while a window was open. */
int offcpu_close(struct offcpu *o, uint64_t time_ns);
int offcpu_open_again(struct offcpu *o, uint64_t time_ns);
int offcpu_whole(struct offcpu *o, uint64_t time_ns);
int offcpu_estimate_look(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat);
int offcpu_estimate_wait(struct offcpu *o, struct offcpu_thread *t, uint64_t in_ns);
/* The wait that it was in at the last look is over, or not followed any more; or its stack is known now. */
int offcpu_end_carry(struct offcpu *o, struct offcpu_thread *t);

/* The stack of a wait that it stays in, or stayed in, is known: seen_stack. 0 or -ENOMEM. */
int offcpu_adopt(struct offcpu *o, struct offcpu_thread *t);
/* No stack that is to come is for its waits up to now. */
void offcpu_forget_stays(struct offcpu_thread *t);

/* offcpu_settle.c: what was seen of a part of a wait, for the sharing out. 0 or -ENOMEM. */
int offcpu_share(struct offcpu *o, const struct offcpu_thread *t, const struct offcpu_share *share);
/* All that is owed becomes intervals. last: no stack that is to come may be theirs. 0; -ENOMEM; the listener's. */
int offcpu_settle(struct offcpu *o, uint64_t time_ns, bool last);

#endif
