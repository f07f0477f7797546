/* The report's lines on time off the CPU: its parts, and the longest waits. */
#ifndef PROFCPU_POST_REPORT_WAITS_H
#define PROFCPU_POST_REPORT_WAITS_H

#include "base/outbuf.h"
#include "profcpu/post/load.h"
#include "profile/profile.h"

#define REPORT_WAITS 5 /* lines of waits */

/* Functions of a blocked wait: the one that waits, and the one outside its library that calls it.
 */
struct report_wait {
	uint32_t name, caller; /* texts of the profile; caller PROFILE_NONE: unknown */
	uint64_t ns;
};

/* Disjoint parts of the time off the CPU; their sum is all of it. */
struct report_waits {
	uint64_t idle_ns, blocked_ns, runnable_ns;
	struct report_wait top[REPORT_WAITS]; /* of the blocked part, longest first */
	size_t ntop;
};

/* Sums the waits of a profile. 0, -ENOMEM, -E2BIG, -errno. */
int report_waits_sum(struct profile *profile, struct report_waits *ret_waits);

/* Writes the lines. waits: their number. 0, or errors of report_waits_sum. */
int report_waits_write(struct profile *profile, uint64_t waits, const struct post_result *input,
		       struct outbuf *out);

#endif
