/*
 * Records switches for as much time as --max-overhead allows (sampler/offcpu/throttle.h). If that
 * is not all the time, events are on in windows. At the end of each window, events go off, the
 * scheduler's counters of all threads are polled, and the rings are read. The measured cost decides
 * when the next window begins and how long it is.
 *
 * While events are off, more polls follow at growing intervals, within a part of the limit. A
 * thread without a switch in between two polls is still in the same wait, so the length of that
 * wait is known. If polls of all threads cost too much, only those are polled whose wait began in
 * the window, until it ends.
 *
 * Events, threads and clocks are reached through struct record_windows_hooks, so that tests can
 * replace them.
 */
#ifndef PROFCPU_RECORD_WINDOWS_H
#define PROFCPU_RECORD_WINDOWS_H

#include "sampler/offcpu/offcpu.h"
#include "sampler/offcpu/switch_rings.h"
#include "sampler/offcpu/throttle.h"

/*
 * Time from the end of a window to the first poll: between this and twice this, with a logarithm
 * that is evenly distributed. It doubles with each poll, so the errors of all lengths of waits are
 * alike.
 */
#define RECORD_WINDOWS_FIRST_POLL_NS (NS_PER_MS / 4)
#define RECORD_WINDOWS_INTERVAL_MAX_NS (16 * NS_PER_MS)
#define RECORD_WINDOWS_POLLS_SHARE 0.2         /* part of the limit for these polls */
#define RECORD_WINDOWS_FOLLOW_PART 4           /* a quarter of it is for sampled waits alone */
#define RECORD_WINDOWS_READ_NS (4 * NS_PER_MS) /* from the end of a window to reading its rings */
/* A poll is slow if it takes more than this part of a window. */
#define RECORD_WINDOWS_QUICK 8
/* Last window before events stay on; all thread states are known at its end. */
#define RECORD_WINDOWS_LAST_NS (10 * NS_PER_MS)

struct record_windows_hooks {
	void *ctx;
	void (*turn)(void *ctx, bool on); /* disables or enables events */
	struct switch_rings_load (*load)(void *ctx);
	/* Records in other threads, among those read since the last call. */
	uint64_t (*others)(void *ctx);
	/* Adds the mark OFFCPU_CLOSE, _OPEN or _WHOLE to the events. 0 or -ENOMEM. */
	int (*mark)(void *ctx, enum offcpu_kind kind, uint64_t time_ns);
	/* Polls threads for time_ns. *ret_width: CPUs kept busy since the last poll; 0: unknown. 0
	 * or -ENOMEM. */
	int (*poll)(void *ctx, uint64_t time_ns, double *ret_width);
	/* Notes the threads that switched in the unread records of a window. */
	void (*note_moved)(void *ctx);
	/*
	 * At the end of a window: finds the threads whose wait began in it, and polls them for
	 * time_ns; later polls them again. *ret_waiting: threads that still wait. 0 or -ENOMEM.
	 */
	int (*find_waiting)(void *ctx, uint64_t time_ns, size_t *ret_waiting);
	int (*follow)(void *ctx, uint64_t time_ns, size_t *ret_waiting);
	/* Sets the time of the next record_windows_turn; 0: none. */
	void (*alarm)(void *ctx, uint64_t time_ns);
	uint64_t (*now_ns)(void *ctx);     /* CLOCK_MONOTONIC */
	uint64_t (*process_ns)(void *ctx); /* CPU time of this process */
	uint64_t (*thread_ns)(void *ctx);  /* CPU time of the thread that reads rings */
	uint64_t (*work_ns)(void *ctx);    /* part of thread_ns: for records that were read */
};

enum record_windows_state {
	RECORD_WINDOWS_WHOLE,  /* events stay on */
	RECORD_WINDOWS_CLOSED, /* events are off until due_ns */
	RECORD_WINDOWS_OPEN,   /* events are on until due_ns */
	RECORD_WINDOWS_LAST,   /* the same; then they stay on */
	RECORD_WINDOWS_READ,   /* events are off; rings are read at due_ns */
};

struct record_windows {
	struct record_windows_hooks hooks;
	struct throttle throttle;
	enum record_windows_state state;
	struct throttle_plan plan;
	uint64_t due_ns;
	/* While events are off: time of the next poll, and the interval after it. */
	uint64_t poll_ns, interval_ns;
	/* Cost of the last poll; budget for polls before the next window, and its part for sampled
	 * waits. */
	uint64_t cost_ns, credit_ns, reserve_ns;
	size_t waiting;     /* threads whose sampled wait goes on */
	uint64_t follow_ns; /* cost of polling one of them */
	uint64_t opened_ns; /* start of the time with events on that report lacks */
	uint64_t closed_ns; /* end of the last window */
	uint64_t reported_ns, reported_process_ns; /* time and CPU time at the last report */
	struct throttle_report report;             /* measurements since then */
	uint64_t reading_ns;
	double width;
	uint64_t windows;
};

/* Starts with events on. options: of throttle_begin. 0 or the error of a hook. */
int record_windows_begin(struct record_windows *s, const struct throttle_options *options,
			 const struct record_windows_hooks *hooks);

/*
 * Does what is due now; call it before rings are read. 1: do not read them now; 0: read them; or
 * the error of a hook.
 */
int record_windows_turn(struct record_windows *s);

/* Call these before and after all rings are read and processed. 0 or the error of a hook. */
void record_windows_reading(struct record_windows *s);
int record_windows_was_read(struct record_windows *s);

struct record_windows_result {
	uint64_t throttled_ns; /* time in which events were on in windows only */
	uint64_t closed_ns;    /* part of throttled_ns in which events were off */
	uint64_t windows;
};
struct record_windows_result record_windows_result(const struct record_windows *s);

#endif
