#include "sampler/shed.h"

#include "base/clock.h"

#define SHED_MARGIN 0.8  /* of the limit: the rate of the next window is not known yet */
#define SHED_DUTY_MIN 1e-4
#define SHED_KEEP 0.75   /* of the former rate, where the new one is lower */
#define SHED_CALM 10     /* reports */
#define SHED_CALM_DUTY 1.3
#define SHED_WORK_NS 5000 /* of the recorder for a record, before that is known */
#define SHED_WORK_UP 2 /* times as much a record may be found to cost as before: what is more is for images that are met for the first time */
#define SHED_ROOM 0.5    /* of the ring that a window may fill */
#define SHED_OTHER_NS 1e9 /* what is no work for records comes and goes: so long an average is of use */
#define SHED_LEAST 0.5  /* of the limit is for windows, whatever else the recorder does */

/* From 0 to 1; xorshift. */
static double next_random(struct shed *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return (double)s->random / 4294967296.0;
}

/* Up at once, down slowly: what costs too much must end soon, what costs too little may take its time. */
static double follow(double before, double now)
{
	return now > before ? now : SHED_KEEP * before + (1 - SHED_KEEP) * now;
}

static double smooth(double before, double now)
{
	return before > 0 ? SHED_KEEP * before + (1 - SHED_KEEP) * now : now;
}

static void learn(struct shed *s, const struct shed_report *r)
{
	if (r->open_ns) {
		double open_s = (double)r->open_ns / (double)NS_PER_S;

		s->rate = follow(s->rate, (double)r->records / open_s);
		s->rate_cpu = follow(s->rate_cpu, (double)r->records_cpu / open_s);
	}
	uint64_t once_ns = 0;

	if (r->records) {
		uint64_t most_ns = (uint64_t)(SHED_WORK_UP * s->work_ns * (double)r->records), work_ns = r->work_ns < most_ns ? r->work_ns : most_ns;
		uint64_t others = r->others < r->records ? r->others : r->records;

		s->others = smooth(s->others, (double)others / (double)r->records);
		s->work_ns = smooth(s->work_ns, (double)work_ns / (double)r->records);
		once_ns = r->work_ns - work_ns;
	}
	if (r->elapsed_ns) {
		double width = (double)r->target_ns / (double)r->elapsed_ns;

		double elapsed = (double)r->elapsed_ns;

		s->other_work = (s->other_work * SHED_OTHER_NS + (double)(r->other_work_ns + once_ns)) / (SHED_OTHER_NS + elapsed);
		s->shed_work = (s->shed_work * SHED_OTHER_NS + (double)r->shed_work_ns) / (SHED_OTHER_NS + elapsed);
		if (r->target_ns)
			s->width = smooth(s->width, width > 1 ? width : 1);
	}
}

/* The part of the time that the limit allows, beside work of so much; over 1: there is that much more to spare. */
static double affordable(const struct shed *s, double work)
{
	double limit = s->options.limit * SHED_MARGIN, left = limit - work;
	double lost_ns = (double)s->options.record_ns * ((1 - s->others) / s->width + s->others / s->options.cpus);
	double cost = s->rate * (lost_ns + s->work_ns) / (double)NS_PER_S;

	if (left < limit * SHED_LEAST)
		left = limit * SHED_LEAST;
	return cost > 0 ? left / cost : 1e9;
}

static double between(double x, double min, double max)
{
	return x < min ? min : x > max ? max : x;
}

static struct shed_plan plan(struct shed *s)
{
	double window = (double)SHED_CYCLE_NS * s->duty, cycle;
	double room = (double)s->options.room_records * SHED_ROOM * (double)NS_PER_S;

	if (s->options.room_records && window * s->rate_cpu > room)
		window = room / s->rate_cpu;
	if (window < (double)SHED_WINDOW_MIN_NS)
		window = (double)SHED_WINDOW_MIN_NS;
	cycle = window / s->duty;
	cycle = between(cycle, (double)SHED_CYCLE_MIN_NS, (double)SHED_CYCLE_MAX_NS);
	return (struct shed_plan){.closed_ns = (uint64_t)((cycle - window) * (0.5 + next_random(s))), .open_ns = (uint64_t)window};
}

static struct shed_plan decide(struct shed *s)
{
	double whole = affordable(s, s->other_work), duty = affordable(s, s->other_work + s->shed_work);

	s->calm = whole > SHED_CALM_DUTY ? s->calm + 1 : 0;
	s->shedding = s->shedding ? s->calm < SHED_CALM : whole < 1;
	s->duty = s->shedding ? between(duty, SHED_DUTY_MIN, 1 / SHED_CALM_DUTY) : 1;
	return s->shedding ? plan(s) : (struct shed_plan){.whole = true};
}

struct shed_plan shed_begin(struct shed *s, const struct shed_options *options)
{
	*s = (struct shed){.options = *options, .random = options->seed | 1, .duty = 1, .width = 1};
	s->options.cpus += !s->options.cpus;
	if (!s->options.record_ns)
		s->options.record_ns = SHED_RECORD_NS;
	s->rate = s->rate_cpu = options->rate;
	s->work_ns = SHED_WORK_NS;
	return decide(s);
}

struct shed_plan shed_next(struct shed *s, const struct shed_report *report)
{
	if (s->shedding) {
		s->shed_ns += report->elapsed_ns;
		s->closed_ns += report->elapsed_ns - report->open_ns;
	} else if (report->elapsed_ns < SHED_REPORT_MIN_NS) {
		return (struct shed_plan){.whole = true};
	}
	learn(s, report);
	return decide(s);
}

bool shed_enough(const struct shed *s, uint64_t records_cpu)
{
	return s->shedding && s->options.room_records && (double)records_cpu > 1.5 * SHED_ROOM * (double)s->options.room_records;
}
