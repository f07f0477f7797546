/*
 * While recording: switches are recorded for as much of the time as --max-overhead allows (sampler/shed.h), in windows where that is not
 * all of it. At the end of each window the events go off, the scheduler's counts of all threads are looked up, the rings are read, and
 * what that cost decides about the next. While they are off the counts are looked up now and then, soon at first and then ever less often, as far as a part of the limit
 * reaches: who has not come to a CPU between two looks is still in the same wait, so that its length is known, short or long.
 *
 * What it does to events, threads and clocks goes through `doer`, so that tests see it.
 */
#ifndef PROFCPU_RECORD_SHED_H
#define PROFCPU_RECORD_SHED_H

#include "sampler/offcpu.h"
#include "sampler/shed.h"
#include "sampler/switches.h"

#define RECORD_SHED_LOOK_NS (NS_PER_MS / 4)   /* from a window to the first look behind it; twice as long to each that follows, */
#define RECORD_SHED_LOOKS_NS (16 * NS_PER_MS) /* up to this */
#define RECORD_SHED_READ_NS (4 * NS_PER_MS)   /* from a window to the reading of its rings */
#define RECORD_SHED_LOOKS 0.2 /* of the limit is for these looks */
#define RECORD_SHED_LAST_NS (10 * NS_PER_MS) /* a window before nothing is shed any more: what threads do is known at its end */

struct record_shed_doer {
	void *ctx;
	void (*turn)(void *ctx, bool on); /* the events */
	struct switches_load (*load)(void *ctx);
	/* Of the records that were read since it was asked last: those of other threads. */
	uint64_t (*others)(void *ctx);
	int (*tell)(void *ctx, enum offcpu_kind kind, uint64_t time_ns); /* OFFCPU_CLOSE, _OPEN, _WHOLE. 0 or -ENOMEM. */
	/* Looks at threads, for that time. *ret_width: how many CPUs they kept busy since the last look; 0: not known. 0 or -ENOMEM. */
	int (*look)(void *ctx, uint64_t time_ns, double *ret_width);
	/* When the next record_shed_turn is due; 0: never. */
	void (*alarm)(void *ctx, uint64_t time_ns);
	uint64_t (*now_ns)(void *ctx); /* CLOCK_MONOTONIC */
	uint64_t (*process_ns)(void *ctx); /* CPU time of this process, */
	uint64_t (*thread_ns)(void *ctx); /* of the thread that reads rings, */
	uint64_t (*work_ns)(void *ctx); /* and of that for records that were read */
};

enum record_shed_state {
	RECORD_SHED_WHOLE, /* events stay on */
	RECORD_SHED_CLOSED, /* they are off until due_ns, */
	RECORD_SHED_OPEN, /* and on until due_ns */
	RECORD_SHED_LAST, /* the same, and then they stay on */
	RECORD_SHED_READ, /* they are off, and their rings are to be read at due_ns */
};

struct record_shed {
	struct record_shed_doer doer;
	struct shed shed;
	enum record_shed_state state;
	struct shed_plan plan;
	uint64_t due_ns;
	uint64_t look_ns, apart_ns; /* events are off: when the next look is due; how far it is from the last */
	uint64_t cost_ns, credit_ns; /* of the last look; what the next ones may cost before the next window */
	uint64_t opened_ns; /* or since when the time that events are on is not in the report yet */
	uint64_t closed_ns;
	uint64_t told_ns, told_process_ns; /* of the last report, */
	struct shed_report report; /* and what happened since */
	uint64_t reading_ns;
	double width;
	uint64_t windows;
};

/* Events are on, from now on. options: as of shed_begin. 0 or the doer's. */
int record_shed_begin(struct record_shed *s, const struct shed_options *options, const struct record_shed_doer *doer);

/* What is due now; before rings are read. 1: they need not be read, as a window has just begun; 0; the doer's. */
int record_shed_turn(struct record_shed *s);

/* Around the reading of all rings and what is made of it. 0 or the doer's. */
void record_shed_reading(struct record_shed *s);
int record_shed_was_read(struct record_shed *s);

struct record_shed_result {
	uint64_t shed_ns, closed_ns; /* how long events were on in windows only, and for how much of that they were off */
	uint64_t windows;
};
struct record_shed_result record_shed_result(const struct record_shed *s);

#endif
