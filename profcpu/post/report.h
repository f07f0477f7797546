/*
 * The report after a recording: samples and losses, the hottest functions, and how far names and
 * stacks can be trusted.
 */
#ifndef PROFCPU_POST_REPORT_H
#define PROFCPU_POST_REPORT_H

#include "base/outbuf.h"
#include "profcpu/post/load.h"
#include "profcpu/post/report_waits.h"
#include "profile/profile.h"

#define REPORT_HOTTEST 5 /* lines of functions */
#define REPORT_UNNAMED 5 /* lines of images and processes with unnamed frames */

/*
 * Writes the report as text. audit is empty for an input of text. managed: NULL: none. dir: path of
 * the recording, for remedies. 0, -ENOMEM, -errno.
 */
int post_report_write(struct profile *profile, const struct post_result *input,
		      const struct report_waits *waits, const struct audit *audit,
		      const struct managed_profiles *managed, const char *dir, struct outbuf *out);

#endif
