/* Writes a comparison as text for people, and as JSON. */
#ifndef PROFCPU_COMPARE_REPORT_H
#define PROFCPU_COMPARE_REPORT_H

#include "base/outbuf.h"
#include "profcpu/compare/methods.h"

#define COMPARE_JSON_FORMAT 1

/* Write to out; errors stay there. */
void compare_report_text(const struct compare *c, const struct compare_methods *methods,
			 const struct profile *profile, struct outbuf *out);
void compare_report_json(const struct compare *c, const struct compare_methods *methods,
			 const struct profile *profile, struct outbuf *out);

/* The cost of the sampler: the part that running threads lost of the time that they could run. */
double compare_cost(const struct compare_totals *t);

#endif
