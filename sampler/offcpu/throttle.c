#include "sampler/offcpu/throttle.h"

#include "base/clock.h"

/* Part of the limit to plan with, because the rate of the next window is not known yet. */
#define THROTTLE_MARGIN 0.8
#define THROTTLE_DUTY_MIN 1e-4
#define THROTTLE_KEEP 0.75 /* weight of the old value if the new one is lower */
/* Throttling ends after THROTTLE_CALM reports in a row with a share above THROTTLE_CALM_DUTY. */
#define THROTTLE_CALM 10
#define THROTTLE_CALM_DUTY 1.3
#define THROTTLE_WORK_NS 5000 /* assumed work of the recorder for a record at first */
/*
 * Cap on the growth of a record's cost from report to report. The rest counts as one-time cost, as
 * of images that are read for the first time.
 */
#define THROTTLE_WORK_UP 2
#define THROTTLE_ROOM 0.5     /* part of the ring that a window may fill */
#define THROTTLE_OTHER_NS 1e9 /* time over which other work is averaged; it comes in bursts */
#define THROTTLE_LEAST 0.25   /* least part of the limit that windows get */

/* A random number from 0 to 1, by xorshift. */
static double next_random(struct throttle *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return (double)s->random / 4294967296.0;
}

/* Follows increases at once and decreases slowly. */
static double follow(double before, double now)
{
	return now > before ? now : THROTTLE_KEEP * before + (1 - THROTTLE_KEEP) * now;
}

static double smooth(double before, double now)
{
	return before > 0 ? THROTTLE_KEEP * before + (1 - THROTTLE_KEEP) * now : now;
}

/* Averages a share of the time over THROTTLE_OTHER_NS, or over the time so far if that is less. */
static double average(const struct throttle *s, double before, uint64_t now_ns, double elapsed_ns)
{
	double seen_ns = (double)s->seen_ns;

	if (seen_ns > THROTTLE_OTHER_NS)
		seen_ns = THROTTLE_OTHER_NS;
	return (before * seen_ns + (double)now_ns) / (seen_ns + elapsed_ns);
}

static void learn(struct throttle *s, const struct throttle_report *r)
{
	if (r->open_ns) {
		double open_s = (double)r->open_ns / (double)NS_PER_S;

		s->rate = follow(s->rate, (double)r->records / open_s);
		s->rate_cpu = follow(s->rate_cpu, (double)r->records_cpu / open_s);
	}
	uint64_t once_ns = 0;

	if (r->records) {
		uint64_t most_ns = (uint64_t)(THROTTLE_WORK_UP * s->work_ns * (double)r->records),
			 work_ns = r->work_ns < most_ns ? r->work_ns : most_ns;
		uint64_t others = r->others < r->records ? r->others : r->records;

		s->others = smooth(s->others, (double)others / (double)r->records);
		s->work_ns = smooth(s->work_ns, (double)work_ns / (double)r->records);
		once_ns = r->work_ns - work_ns;
	}
	if (r->elapsed_ns) {
		double width = (double)r->target_ns / (double)r->elapsed_ns;

		double elapsed = (double)r->elapsed_ns;

		s->other_work = average(s, s->other_work, r->other_work_ns + once_ns, elapsed);
		s->throttle_work = average(s, s->throttle_work, r->throttle_work_ns, elapsed);
		s->seen_ns += r->elapsed_ns;
		if (r->target_ns)
			s->width = smooth(s->width, width > 1 ? width : 1);
	}
}

/* Share of their time that the targets lose if each record takes ns. */
static double lost(const struct throttle *s, double ns)
{
	double spread = (1 - s->others) / s->width + s->others / s->options.cpus;

	return s->rate * ns * spread / (double)NS_PER_S;
}

/*
 * Share of the targets' time that events cost while they are off. Threads switch more often then,
 * because nothing is recorded.
 */
static double lost_while_off(const struct throttle *s)
{
	double recorded = lost(s, (double)s->options.record_ns);

	return lost(s, THROTTLE_OFF_NS) / (1 - (recorded < 0.9 ? recorded : 0.9));
}

/*
 * Share of the time that events may be on; above 1 the limit is not reached. work: share of the
 * time that goes to other work.
 */
static double affordable(const struct throttle *s, double work)
{
	double limit = s->options.limit * THROTTLE_MARGIN, left = limit - work;
	double cost =
		lost(s, (double)s->options.record_ns) + s->rate * s->work_ns / (double)NS_PER_S;

	if (left < limit * THROTTLE_LEAST)
		left = limit * THROTTLE_LEAST;
	return cost > 0 ? left / cost : 1e9;
}

static double between(double x, double min, double max)
{
	return x < min ? min : x > max ? max : x;
}

static struct throttle_plan plan(struct throttle *s)
{
	double window = (double)THROTTLE_CYCLE_NS * s->duty, cycle;
	double room = (double)s->options.room_records * THROTTLE_ROOM * (double)NS_PER_S;

	if (s->options.room_records && window * s->rate_cpu > room)
		window = room / s->rate_cpu;
	if (window < (double)THROTTLE_WINDOW_MIN_NS)
		window = (double)THROTTLE_WINDOW_MIN_NS;
	cycle = window / s->duty;
	cycle = between(cycle, (double)THROTTLE_CYCLE_MIN_NS, (double)THROTTLE_CYCLE_MAX_NS);
	return (struct throttle_plan){.closed_ns =
					      (uint64_t)((cycle - window) * (0.5 + next_random(s))),
				      .open_ns = (uint64_t)window};
}

static struct throttle_plan decide(struct throttle *s)
{
	/* Most work of the start is done only once, so it counts as that of a whole second. */
	double seen = (double)s->seen_ns / THROTTLE_OTHER_NS,
	       whole = affordable(s, s->other_work * (seen < 1 ? seen : 1)),
	       duty = affordable(s, s->other_work + s->throttle_work + lost_while_off(s));

	s->calm = whole > THROTTLE_CALM_DUTY ? s->calm + 1 : 0;
	s->throttling = s->throttling ? s->calm < THROTTLE_CALM : whole < 1;
	s->duty = s->throttling ? between(duty, THROTTLE_DUTY_MIN, 1 / THROTTLE_CALM_DUTY) : 1;
	return s->throttling ? plan(s) : (struct throttle_plan){.whole = true};
}

struct throttle_plan throttle_begin(struct throttle *s, const struct throttle_options *options)
{
	*s = (struct throttle){
		.options = *options, .random = options->seed | 1, .duty = 1, .width = 1};
	s->options.cpus += !s->options.cpus;
	if (!s->options.record_ns)
		s->options.record_ns = THROTTLE_RECORD_NS;
	s->rate = s->rate_cpu = options->rate;
	s->work_ns = THROTTLE_WORK_NS;
	return decide(s);
}

struct throttle_plan throttle_next(struct throttle *s, const struct throttle_report *report)
{
	if (s->throttling) {
		s->throttled_ns += report->elapsed_ns;
		s->closed_ns += report->elapsed_ns - report->open_ns;
	} else if (report->elapsed_ns < THROTTLE_REPORT_MIN_NS) {
		return (struct throttle_plan){.whole = true};
	}
	learn(s, report);
	return decide(s);
}

bool throttle_enough(const struct throttle *s, uint64_t records_cpu)
{
	return s->throttling && s->options.room_records &&
	       (double)records_cpu > 1.5 * THROTTLE_ROOM * (double)s->options.room_records;
}
