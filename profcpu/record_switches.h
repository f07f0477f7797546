/* What --off-cpu adds to a recording: the rings of switches, and what becomes of them. */
#ifndef PROFCPU_RECORD_SWITCHES_H
#define PROFCPU_RECORD_SWITCHES_H

#include "profcpu/record.h"
#include "profcpu/record_offcpu.h"
#include "profcpu/record_shed.h"
#include "sampler/switches.h"

#define RECORD_SWITCHES_STACK_BYTES 16384 /* copied at most, unless another number was asked for */

/* Zeroed: nothing is added, and all but _open and _begin do nothing. */
struct record_switches {
	struct switches *switches;
	struct record_offcpu *offcpu;
	struct record_shed *shed; /* NULL: events are always on */
	int timer_fd; /* with shed */
	const struct record_unwind *unwind; /* that takes the records; borrowed; NULL: none was read so far */
};

/* With off_cpu: opens them. 0, or -errno with *problem. */
int record_switches_open(struct record_switches *s, const struct record_options *options, struct sampler_problem *problem);

/* 0 or -ENOMEM. */
int record_switches_begin(struct record_switches *s, const struct record_options *options, uint64_t begin_ns);

/* What was opened, RECORD_SWITCHES_EVENTS at most: switches, and behind them wakings if there are any. Gives how many. */
#define RECORD_SWITCHES_EVENTS 2
size_t record_switches_opened(const struct record_switches *s, struct sampler_opened *ret_opened, uint32_t *ret_waking_pid_offset);

/* The same events as they are in perf.data; names and ids live as long as s. */
size_t record_switches_events(const struct record_switches *s, const struct perf_event_attr *beside, struct perfdata_writer_event *ret_events);

/* A descriptor to poll beside the rings; -1: none. */
int record_switches_timer(const struct record_switches *s);

/* What is due, before a round. 1: no round is needed; 0; -errno. */
int record_switches_turn(struct record_switches *s);

/* A round: mark before other rings are read, take before it is dealt with, release behind, which also says what may have been lost by then. 0 or
 * -errno. */
void record_switches_mark(struct record_switches *s);
int record_switches_take(struct record_switches *s, struct record_unwind *unwind);
int record_switches_release(struct record_switches *s);
/* And this when it was dealt with. 0 or -errno. */
int record_switches_was_read(struct record_switches *s);

/* No more; the last round can be read. Gives the time of the end, CLOCK_MONOTONIC. */
uint64_t record_switches_stop(struct record_switches *s);

/* By log_note: how much it was, and how much of that is not in the recording. */
void record_switches_say(const struct record_switches *s, uint64_t min_ns);
void record_switches_free(struct record_switches *s);

#endif
