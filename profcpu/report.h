/* What a user reads after a recording: how much was sampled and lost, the hottest functions, how far names can be trusted. */
#ifndef PROFCPU_REPORT_H
#define PROFCPU_REPORT_H

#include "base/outbuf.h"
#include "profcpu/input.h"
#include "profile/profile.h"

#define REPORT_HOTTEST 5
#define REPORT_UNNAMED 5 /* lines of what has no name, and why */
#define REPORT_SHARE_BYTES 24

/* One function with its own share: leaves of samples, merged by full name. */
struct report_function {
	uint32_t name; /* text of the profile */
	uint8_t kind; /* enum frame_kind */
	double share; /* of the event's weight, 0 to 1 */
};

/* The hottest functions of the event with the most samples, hottest first; at most max. Gives their number, or -errno. */
int report_hottest(struct profile *profile, struct report_function *ret_functions, int max);

/* n of all as "12.34 %". What is not all is never "100.00 %", and what is not nothing never "0.00 %". */
void report_share(uint64_t n, uint64_t all, char text[REPORT_SHARE_BYTES]);

/* Writes the text. audit: empty for text. 0, -ENOMEM, -errno. */
int report_write(struct profile *profile, const struct input_result *input, const struct audit *audit, struct outbuf *out);

#endif
