/*
 * How much of the time events may be on, so that what they cost stays within a limit: the target's lost time and the recorder's work
 * together. Where all of it would be too much, events are on in windows only, at random intervals, so that nothing in the target that
 * comes again and again is always, or never, met by one.
 *
 * The controller decides, the caller does: it switches events off and on, and says what was seen. All times in nanoseconds.
 */
#ifndef SAMPLER_SHED_H
#define SAMPLER_SHED_H

#include <stdbool.h>
#include <stdint.h>

/* What a record with callchain, registers and a copy of the stack costs the thread that is switched or wakes, measured on Linux 6.18, in a
 * virtual machine; without a stack 1000. */
#define SHED_RECORD_NS 5000

#define SHED_WINDOW_MIN_NS UINT64_C(200000)  /* shorter ones begin and end in the midst of most waits */
#define SHED_CYCLE_MIN_NS UINT64_C(10000000) /* switching events costs the recorder about 20 us for each CPU */
#define SHED_CYCLE_NS UINT64_C(40000000)     /* many short windows say more than few long ones */
#define SHED_CYCLE_MAX_NS UINT64_C(1000000000)

struct shed_options {
	double limit;          /* --max-overhead: 0.05 for 5 percent */
	uint64_t record_ns;    /* of the target's time for each record; 0: SHED_RECORD_NS */
	uint64_t room_records; /* that fit in the ring of one CPU; 0: no matter */
	double rate;           /* records a second that are to be expected (switches of the targets before); 0: not known */
	unsigned cpus; /* of the machine; 0: 1 */
	uint32_t seed;
};

/* What happened since the last report. */
struct shed_report {
	uint64_t elapsed_ns, open_ns; /* how long it was, and how long of it events were on */
	uint64_t records;      /* that the events made, */
	uint64_t others;       /* and of these such in the context of others than the targets, who lose by them a part of all CPUs */
	uint64_t records_cpu;  /* the most that one CPU made of these */
	uint64_t work_ns;      /* CPU time of the recorder for these records, */
	uint64_t shed_work_ns; /* for windows themselves and looks, which there would not be without, */
	uint64_t other_work_ns; /* and for everything else that counts against the limit */
	uint64_t target_ns;    /* how long the targets ran, all threads together; 0: not known */
};

struct shed {
	struct shed_options options;
	uint32_t random;
	bool shedding;
	unsigned calm;     /* reports in a row after which it could end */
	double rate;       /* records a second while events are on */
	double rate_cpu;   /* of one CPU */
	double work_ns;    /* of the recorder for a record */
	double other_work, shed_work; /* parts of the time */
	double others;     /* the part of the records that is of others */
	double width;      /* CPUs that the targets keep busy, at least 1: what they lose is a part of that */
	double duty;       /* the part of the time that events may be on */
	uint64_t shed_ns, closed_ns; /* since the beginning */
};

/* What is to be done next. */
struct shed_plan {
	bool whole; /* events stay on */
	uint64_t closed_ns, open_ns; /* else they are off first, then on; then a report is due */
};

/* And says how to begin. */
struct shed_plan shed_begin(struct shed *s, const struct shed_options *options);

/* Events are on all the time: call it each time that rings were read (within SHED_REPORT_MIN_NS of the last it does nothing, and the report is
 * to be added to the next). After a window: with what it showed. */
#define SHED_REPORT_MIN_NS UINT64_C(10000000)
struct shed_plan shed_next(struct shed *s, const struct shed_report *report);

/* In the midst of a window: it has had what it is worth, or the ring would be full soon. Another one is due at once. */
bool shed_enough(const struct shed *s, uint64_t records_cpu);

#endif
