/*
 * The report after a recording: samples and losses, the hottest functions, and how far names and
 * stacks can be trusted.
 */
#ifndef PROFCPU_POST_REPORT_H
#define PROFCPU_POST_REPORT_H

#include "base/outbuf.h"
#include "profcpu/post/load.h"
#include "profile/profile.h"

#define REPORT_HOTTEST 5 /* lines of functions */
#define REPORT_UNNAMED 5 /* lines of images and processes with unnamed frames */

/* A function and its own share, without callees. Frames with one full name are one function. */
struct report_function {
	uint32_t name; /* text of the profile */
	uint8_t kind;  /* enum frame_kind */
	double share;  /* of the event's weight, 0 to 1 */
};

/*
 * The hottest functions of the event with the most samples, hottest first. Returns their number, at
 * most max, or -errno.
 */
int post_report_hottest(struct profile *profile, struct report_function *ret_functions, int max);

/*
 * Writes the report as text. audit is empty for an input of text. dir: path of the recording, for
 * remedies. 0, -ENOMEM, -errno.
 */
int post_report_write(struct profile *profile, const struct post_result *input,
		      const struct audit *audit, const char *dir, struct outbuf *out);

#endif
