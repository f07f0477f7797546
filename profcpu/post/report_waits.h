/* The report's lines on time off the CPU: its parts, and the longest waits. */
#ifndef PROFCPU_POST_REPORT_WAITS_H
#define PROFCPU_POST_REPORT_WAITS_H

#include "base/outbuf.h"
#include "profcpu/post/load.h"
#include "profile/idle.h"
#include "profile/profile.h"

#define REPORT_WAITS 5 /* lines of waits */

/* Functions of a blocked wait: the one that waits, and the one outside its library that calls it.
 */
struct report_wait {
	uint32_t name, caller; /* texts of the profile; caller PROFILE_NONE: unknown */
	uint64_t ns;
};

/* The time off the CPU, and its disjoint parts. Zero without waits. */
struct report_waits {
	uint64_t samples; /* of the event of waits */
	uint64_t ns, idle_ns, blocked_ns, runnable_ns;
	struct report_wait top[REPORT_WAITS]; /* of the blocked part, longest first */
	size_t ntop;
	bool compared; /* beside samples of a runtime, which need all switches; of the caller */
};

/* Sums the waits of a profile. idle: of idle_new. 0, -ENOMEM. */
int report_waits_sum(struct profile *profile, struct idle *idle, struct report_waits *ret_waits);

/* Writes the lines. */
void report_waits_write(const struct profile *profile, const struct report_waits *waits,
			const struct post_result *input, struct outbuf *out);

#endif
