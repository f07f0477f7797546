/* report.json: the report for programs, with more detail than the printed one. */
#ifndef PROFCPU_POST_REPORT_JSON_H
#define PROFCPU_POST_REPORT_JSON_H

#include "base/outbuf.h"
#include "profcpu/post/load.h"
#include "profcpu/post/report_waits.h"
#include "profile/profile.h"
#include "symbols/audit.h"

#define REPORT_JSON_FORMAT 1 /* value of "format"; new keys do not change it */

/* Writes one object. audit is empty for an input of text, which has only samples.
 * managed: NULL: none. 0 or -errno. */
int post_report_json_write(const struct profile *profile, const struct post_result *input,
			   const struct report_waits *waits, const struct audit *audit,
			   const struct managed_profiles *managed, struct outbuf *out);

#endif
