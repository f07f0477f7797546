/* A value of a counter as people see it, and the texts that dotnet-counters makes of it. */
#ifndef PROFCPU_COUNTERS_COUNTER_VALUE_H
#define PROFCPU_COUNTERS_COUNTER_VALUE_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Texts are UTF-8 from outside. They are borrowed, and "" if there are none. */
struct counter_value {
	uint64_t time_ns;     /* of the event */
	const char *provider; /* EventSource or meter */
	const char *name;
	const char *title; /* name for people; "": name */
	const char *unit;
	const char *tags, *meter_tags, *instrument_tags; /* "KEY=VALUE,KEY=VALUE" */
	bool is_meter;
	bool counts;          /* counts something: without a unit, its unit is Count */
	bool is_rate;         /* the change in an interval */
	uint64_t interval_ms; /* with is_rate */
	bool has_quantile;    /* of a histogram */
	double quantile;      /* 0 to 1 */
	double value;
};

/* Puts a number as .NET writes it: the shortest that reads back equal, as "0.1" and "1E-07". */
void counter_put_number(struct outbuf *out, double x);

/* Puts the name with its unit: "Allocation Rate (B / 1 sec)". */
void counter_put_title(struct outbuf *out, const struct counter_value *v);

/* Puts the tags of the value alone, with the percentile: "route=/a,Percentile=50". */
void counter_put_tags(struct outbuf *out, const struct counter_value *v);

/* Puts the tags of the meter, the instrument and the value, separated by commas. */
void counter_put_all_tags(struct outbuf *out, const struct counter_value *v);

/* The same, the most telling ones first: a narrow terminal shows only the begin. */
void counter_put_shown_tags(struct outbuf *out, const struct counter_value *v);

#endif
