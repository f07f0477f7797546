/*
 * Keeps the cost of recording switches within a limit: time lost by targets plus work of the
 * recorder. If recording all switches costs too much, events are enabled in windows only. Windows
 * come at random intervals, so that no periodic behaviour of the target is always or never seen.
 *
 * The controller only decides; the caller enables and disables events and reports what it measured.
 * All times are in nanoseconds.
 */
#ifndef SAMPLER_OFFCPU_THROTTLE_H
#define SAMPLER_OFFCPU_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * RECORD_NS: cost of one record, with callchain, registers and stack, to the switched or waking
 * thread. OFF_NS: cost of one switch while events are off. Measured on Linux 6.18 in a virtual
 * machine; a record without a stack costs 1000.
 */
#define THROTTLE_RECORD_NS 7500
#define THROTTLE_OFF_NS 50

/* Most waits are longer than a shorter window. */
#define THROTTLE_WINDOW_MIN_NS UINT64_C(200000)
/* Enabling and disabling events costs the recorder about 20 us per CPU. */
#define THROTTLE_CYCLE_MIN_NS UINT64_C(10000000)
/* Many short windows give better estimates than few long ones. */
#define THROTTLE_CYCLE_NS UINT64_C(40000000)
#define THROTTLE_CYCLE_MAX_NS UINT64_C(1000000000)

struct throttle_options {
	double limit;          /* --max-overhead: 0.05 for 5 percent */
	uint64_t record_ns;    /* cost of a record for the target; 0: THROTTLE_RECORD_NS */
	uint64_t room_records; /* records that fit into the ring of a CPU; 0: no limit */
	double rate;           /* expected records per second; 0: unknown */
	unsigned cpus;         /* of the machine; 0: 1 */
	uint32_t seed;
};

/* Measurements since the last report. */
struct throttle_report {
	uint64_t elapsed_ns, open_ns; /* time in all; time with events enabled */
	uint64_t records;
	uint64_t others;      /* records in other threads, which slow down all CPUs */
	uint64_t records_cpu; /* records of the busiest CPU */
	/* CPU time of the recorder: for records, for windows and polls, and for all else. */
	uint64_t work_ns, throttle_work_ns, other_work_ns;
	uint64_t target_ns; /* CPU time of all target threads; 0: unknown */
};

struct throttle {
	struct throttle_options options;
	uint32_t random;
	bool throttling;
	unsigned calm;                    /* reports in a row that allow throttling to end */
	double rate;                      /* records per second while enabled */
	double rate_cpu;                  /* of the busiest CPU */
	double work_ns;                   /* CPU time of the recorder for a record */
	double other_work, throttle_work; /* shares of the time */
	double others;                    /* share of records in other threads */
	double width;                     /* CPUs that the targets keep busy, at least 1 */
	double duty;                      /* share of the time that events may be enabled */
	uint64_t seen_ns, throttled_ns, closed_ns; /* since the start */
};

/* The next step. */
struct throttle_plan {
	bool whole; /* events stay enabled */
	/* else disable events for closed_ns, enable them for open_ns, then report */
	uint64_t closed_ns, open_ns;
};

/* Starts; returns the first step. */
struct throttle_plan throttle_begin(struct throttle *s, const struct throttle_options *options);

/*
 * Takes a report and returns the next step. Call it after each window, or while events stay enabled
 * after each read of the rings. If events stay enabled, it ignores a report within
 * THROTTLE_REPORT_MIN_NS of the last one; add those measurements to the next report.
 */
#define THROTTLE_REPORT_MIN_NS UINT64_C(10000000)
struct throttle_plan throttle_next(struct throttle *s, const struct throttle_report *report);

/* Whether to end a window early: it has enough records, or the ring is nearly full. */
bool throttle_enough(const struct throttle *s, uint64_t records_cpu);

#endif
