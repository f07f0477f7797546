/* The part of a recording that --off-cpu adds: rings of switches, throttling, and the summary. */
#ifndef PROFCPU_RECORD_SWITCHES_H
#define PROFCPU_RECORD_SWITCHES_H

#include "profcpu/record/offcpu_records.h"
#include "profcpu/record/options.h"
#include "profcpu/record/windows.h"
#include "sampler/offcpu/switch_rings.h"

#define RECORD_SWITCHES_STACK_BYTES 16384 /* largest copy, unless stack_fixed */

/* Zeroed: without --off-cpu; then only _open and _begin may do something. */
struct record_switches {
	struct switch_rings *rings;
	struct record_offcpu *offcpu;
	struct record_windows *windows; /* NULL: events are always on, or not begun */
	double max_overhead;            /* share of CPU time; 0: no limit, and no timer */
	int timer_fd;
	const struct record_unwind *unwind; /* takes the records; borrowed; NULL: none so far */
};

/* Opens the rings, with off_cpu. 0, or -errno with *problem. */
int record_switches_open(struct record_switches *s, const struct record_options *options,
			 struct sampler_problem *problem);

/* Prepares the accounting, and throttling if there is a limit. 0 or -errno. */
int record_switches_begin(struct record_switches *s, const struct record_options *options);

/* Records switches from now on. Records of existing threads were taken before. 0 or -errno. */
int record_switches_start(struct record_switches *s, uint64_t begin_ns);

/* The opened events: switches, then wakings if recorded. Returns their number. */
#define RECORD_SWITCHES_EVENTS 2
size_t record_switches_opened(const struct record_switches *s, struct sampler_opened *ret_opened,
			      uint32_t *ret_waking_pid_offset);

/* The same events as perf.data has them; names and ids live as long as s. */
size_t record_switches_events(const struct record_switches *s, const struct perf_event_attr *beside,
			      struct perfdata_writer_event *ret_events);

/* A timer descriptor to poll; -1: none. */
int record_switches_timer(const struct record_switches *s);

/* Does what is due before a round. 1: no round is needed; 0; -errno. */
int record_switches_begin_round(struct record_switches *s);

/*
 * Steps of a round: mark before other rings are read, take before the records are processed,
 * release after that. release also notes full rings. 0 or -errno.
 */
void record_switches_mark(struct record_switches *s);
int record_switches_take(struct record_switches *s, struct record_unwind *unwind);
int record_switches_release(struct record_switches *s);
/* Ends the round, after the release. 0 or -errno. */
int record_switches_end_round(struct record_switches *s);

/* Stops recording; the last round can still be read. Returns the end, CLOCK_MONOTONIC. */
uint64_t record_switches_stop(struct record_switches *s);

/* Logs the sums of waits, and the parts that are estimated, unknown or left out. */
void record_switches_report(const struct record_switches *s, uint64_t min_ns);
void record_switches_free(struct record_switches *s);

#endif
