/* report.json: all that the report says, and more, for programs. */
#ifndef PROFCPU_REPORT_JSON_H
#define PROFCPU_REPORT_JSON_H

#include "base/outbuf.h"
#include "profcpu/input.h"
#include "profile/profile.h"
#include "symbols/audit.h"

#define REPORT_JSON_FORMAT 1 /* "format"; what is only added does not change it */

/* Writes one object. audit: empty for text, of which only samples are known. 0 or -errno. */
int report_json_write(struct profile *profile, const struct input_result *input, const struct audit *audit,
		      struct outbuf *out);

#endif
