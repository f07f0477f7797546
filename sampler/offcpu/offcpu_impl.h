/* Shared by the parts of offcpu: order of events (offcpu.c), states of threads (offcpu_state.c),
 * exact runnable time (offcpu_settle.c), estimates (offcpu_estimate.c, offcpu_flush.c). */
#ifndef SAMPLER_OFFCPU_OFFCPU_IMPL_H
#define SAMPLER_OFFCPU_OFFCPU_IMPL_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "sampler/offcpu/offcpu.h"

enum offcpu_state {
	OFFCPU_UNSURE, /* the next event shows the state */
	OFFCPU_RUNNING,
	OFFCPU_OFF_CPU,
};

/* A wait that is not over. */
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

/* A finished wait whose stack may still come. */
struct offcpu_stay {
	uint64_t count, ns; /* count of schedstat; time from poll to poll */
};
/* Finished waits kept per thread, because a stack may come some rounds later. */
#define OFFCPU_STAYS 4

/* Polls whose times are kept, to weight waits. */
#define OFFCPU_MARKS 256

/* A finished wait until the next poll of its thread. */
struct offcpu_held {
	struct offcpu_interval interval;
	uint32_t next; /* index + 1; 0: none */
};

/* Events of a thread in a window, between two polls. */
struct offcpu_window {
	bool seen; /* a switch was recorded */
	uint64_t ins, on_ns;
	bool began_waiting;         /* the first switch was a switch in */
	uint64_t first_in_ns;       /* time from the start of the window to that switch */
	struct offcpu_waking woken; /* its waking; time_ns 0: unknown */
	bool waits;                 /* the thread was in `wait` at the end of the window */
	struct offcpu_open wait;
	/* Time of `wait` in the window; 0: it began before throttling, so it is not a sample. */
	uint64_t wait_ns;
};

struct offcpu_thread {
	pid_t tid;
	uint8_t state;      /* enum offcpu_state */
	bool ended, polled; /* polled: base is valid */
	bool is_listed;     /* in offcpu.trusted */
	bool is_shared;     /* may have shares in offcpu.shares */
	uint64_t since_ns;  /* start of the state, or of the part of a wait not accounted for yet */
	struct offcpu_open open;     /* OFFCPU_OFF_CPU */
	struct offcpu_waking waking; /* the last one while running */
	struct offcpu_totals totals;
	struct schedstat base; /* counters at base_ns; earlier time is accounted for or pending */
	uint64_t base_ns;
	struct schedstat latest; /* counters of a later poll, in exact times */
	bool polled_again;
	bool counted; /* count is valid: switches in so far */
	uint64_t count;
	uint64_t doubt_ns; /* start of doubt, because events are missing; 0: none */
	/* Finished waits since the poll `settled`, if settles; index + 1 in held, oldest first */
	uint32_t held_first, held_last, nheld;
	bool settles;
	struct schedstat settled;
	int64_t owed_ns; /* runnable time that the next waits get, or give back */
	uint64_t cut_ns; /* part of a wait that was handed out before the counters have it */
	/* While throttled */
	struct offcpu_window now;  /* the present window */
	struct offcpu_window last; /* the window before the last mark */
	bool carried;              /* the thread was in `carry` at base_ns */
	struct offcpu_open carry;
	uint64_t carry_ns;    /* length of carry up to base_ns */
	uint64_t followed_ns; /* carry lasts until then, at least; 0: until base_ns */
	bool carry_sample;    /* carry began in a window */
	/* Time in the present wait from poll to poll; the part that has no stack yet. */
	uint64_t stay_ns, stayed_ns;
	bool stays_long;                        /* stay_ns is in pending_ns[1] */
	struct offcpu_stay stays[OFFCPU_STAYS]; /* earlier ones; ns 0: none */
	uint8_t next_stay;
	uint32_t seen_stack; /* stack from offcpu_add_stack, for the wait with seen_count */
	uint64_t seen_count;
	/* Time since the epoch began that is not yet divided among waits. [1]: waits that lasted
	 * from poll to poll; [0]: all others. */
	uint64_t pending_ns[2];
	uint64_t pending_runnable_ns;             /* runnable part of both */
	uint64_t exact_run_ns, exact_runnable_ns; /* totals at the last mark */
	uint64_t ahead_ns; /* run time beyond the time between polls, because counters lag */
	struct {
		bool due[2];
		uint64_t seen_ns[2];                     /* sum of shares */
		uint64_t cut_ns[2];                      /* processed part of seen_ns */
		uint64_t given_ns[2];                    /* time given to the processed shares */
		uint64_t seen;                           /* number of waits of [0] */
		uint64_t blocked_ns, runnable_ns, count; /* sums of shares after scaling */
		uint64_t cut_blocked, cut_runnable, gave_blocked, gave_runnable;
	} flush;
};

/* With its entries in lists and in `tids`, which may be a quarter full */
_Static_assert(sizeof(struct offcpu_thread) + 3 * sizeof(uint32_t) +
			       4 * sizeof(struct hashmap_slot) <=
		       OFFCPU_THREAD_BYTES,
	       "a thread takes no more");

/* Sums of similar recorded waits. */
struct offcpu_share {
	uint32_t thread;
	uint32_t stack, waker_stack;
	pid_t waker;
	uint8_t wait;
	bool stayed, is_short, flushed;
	uint64_t count, blocked_ns, runnable_ns;
};

struct offcpu_queued {
	struct offcpu_event event;
	struct schedstat poll; /* of OFFCPU_POLL */
	uint64_t order;        /* order among equal times */
};

struct offcpu {
	struct offcpu_listener listener;
	uint64_t begin_ns, min_ns;
	struct offcpu_counts counts;
	VEC(struct offcpu_queued) queue;
	uint64_t newest_ns, horizon_ns, done_ns;
	uint64_t lost_until_ns; /* events may be missing up to here */
	uint64_t over_from_ns,
		over_until_ns; /* time range of dropped events; over_until_ns 0: none */
	uint64_t order;
	uint64_t round_ns; /* done_ns when the present round began */
	bool polled;       /* the caller polls */
	VEC(struct offcpu_held) held;
	uint32_t held_unused; /* index + 1; 0: none */
	VEC(uint64_t) sizes;  /* scratch */
	struct hashmap tids;  /* tid -> index of its latest thread */
	VEC(struct offcpu_thread) threads;
	size_t begun; /* threads in `threads`, and those to come from the queue */
	VEC(uint32_t) free;
	VEC(uint32_t) trusted; /* threads without doubt_ns, and some others */
	VEC(uint32_t) gone;    /* ended threads whose estimates are to come */
	/* Throttling */
	bool open, estimating,
		whole; /* whole: exact again; polls for the throttled time are to come */
	bool wakings;  /* wakings are recorded */
	uint64_t open_ns, mark_ns;    /* time of the last OPEN; of the last CLOSE or WHOLE */
	uint64_t window_ns;           /* between these two */
	uint64_t closed_ns;           /* end of the last window */
	uint64_t marks[OFFCPU_MARKS]; /* times of the latest marks, in order */
	size_t nmarks;
	uint64_t placed; /* number of placed waits */
	uint64_t epoch_ns;
	VEC(struct offcpu_share) shares;
	struct hashmap share_of; /* hash of a share's key -> its index + 1 */
};

/* Subtracts with saturation, because counters lag events. */
static inline uint64_t offcpu_subtract(uint64_t of, uint64_t by)
{
	return of > by ? of - by : 0;
}

/* offcpu_state.c: hands a wait to the listener, or counts it as short. 0 or the listener's. */
int offcpu_emit(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_interval *interval);
/* offcpu_state.c: hands out totals of a thread and frees its place. 0; -ENOMEM; the listener's. */
int offcpu_release(struct offcpu *o, uint32_t thread);
/* offcpu_state.c: divides a wait into blocked and runnable time. */
void offcpu_divide(const struct offcpu_open *open, uint64_t out_ns, uint64_t in_ns,
		   uint64_t *ret_blocked, uint64_t *ret_runnable);

/* offcpu_state.c: accounts for the time of a thread up to time_ns. cut: its state continues. */
int offcpu_end_exact(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns, bool cut);

/* offcpu_state.c */
int offcpu_begin_thread(struct offcpu *o, const struct offcpu_event *e);
int offcpu_switch_out(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e);
int offcpu_switch_in(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e);
int offcpu_wake(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e);
int offcpu_end_thread(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_event *e);
void offcpu_lost_events(struct offcpu *o, const struct offcpu_event *e);
int offcpu_give_up(struct offcpu *o, struct offcpu_thread *t, uint64_t until_ns,
		   enum offcpu_state state);
int offcpu_apply_poll(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat,
		      uint64_t time_ns);
int offcpu_give_up_all(struct offcpu *o, uint64_t until_ns);
int offcpu_end_unsure(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *last,
		      uint64_t end_ns);

/* Adds unknown time that no poll covers, while throttled. */
static inline void offcpu_add_unwatched(struct offcpu_thread *t, uint64_t ns)
{
	t->totals.unknown_ns += ns;
	t->totals.unwatched_ns += ns;
}

/* offcpu_settle.c: each 0; -ENOMEM; the listener's. */
/* Keeps a finished wait until the next poll of its thread. */
int offcpu_hold(struct offcpu *o, struct offcpu_thread *t, const struct offcpu_interval *interval);
/* Hands out the held waits, corrected by a poll. */
int offcpu_settle(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat);
/* Hands out the held waits as they are, because no poll follows. */
int offcpu_unhold(struct offcpu *o, struct offcpu_thread *t);

/* offcpu_estimate.c: marks, polls, and whole waits in a window. 0; -ENOMEM; the listener's. */
int offcpu_close(struct offcpu *o, uint64_t time_ns);
int offcpu_open_again(struct offcpu *o, uint64_t time_ns);
int offcpu_whole(struct offcpu *o, uint64_t time_ns);
int offcpu_estimate_poll(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat);
int offcpu_estimate_wait(struct offcpu *o, struct offcpu_thread *t, uint64_t in_ns);
/* Ends the carried wait: it is over or its stack is now known. 0 or -ENOMEM. */
int offcpu_end_carry(struct offcpu *o, struct offcpu_thread *t);

/* Ends the carried wait at a switch in between CLOSE and the end of events. 0 or -ENOMEM. */
int offcpu_late_in(struct offcpu *o, struct offcpu_thread *t, uint64_t time_ns);

/* Ends the carried sample if the counters at time_ns show that it is over. 0 or -ENOMEM. */
int offcpu_follow(struct offcpu *o, struct offcpu_thread *t, const struct schedstat *stat,
		  uint64_t time_ns);

/* Ends a wait that lasted from poll to poll. */
void offcpu_end_stay(struct offcpu_thread *t);

/* Uses seen_stack for the present or a recent wait. 0 or -ENOMEM. */
int offcpu_adopt(struct offcpu *o, struct offcpu_thread *t);
/* Forgets waits whose stack has not come. */
void offcpu_forget_stays(struct offcpu_thread *t);

/* offcpu_flush.c: adds a recorded part of a wait to the shares. 0 or -ENOMEM. */
int offcpu_share(struct offcpu *o, const struct offcpu_thread *t, const struct offcpu_share *share);
/* Turns pending time into intervals. last: no later stack can belong to it. 0; -ENOMEM; the
 * listener's -errno. */
int offcpu_flush(struct offcpu *o, uint64_t time_ns, bool last);
/* Hands out the pending time of an ended thread that has no shares, and frees its place. 0;
 * -ENOMEM; the listener's. */
int offcpu_finish_ended(struct offcpu *o, uint32_t thread, uint64_t time_ns);

#endif
