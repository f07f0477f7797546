/* The parts of the report that show event profiles. */
#ifndef PROFCPU_MANAGED_REPORT_H
#define PROFCPU_MANAGED_REPORT_H

#include "base/json_writer.h"
#include "profcpu/managed/profiles.h"

/* Writes at most six lines for each kind, and one for the cost. out->error is set as usual. */
void managed_report_text(const struct managed_profiles *m, const struct profile *profile,
			 struct outbuf *out);

/* Puts the object "managed". */
void managed_report_json(const struct managed_profiles *m, const struct profile *profile,
			 struct json_writer *w);

#endif
