/* Rows of `profcpu doctor -p PID` on that process. */
#ifndef PROFCPU_DOCTOR_TARGET_H
#define PROFCPU_DOCTOR_TARGET_H

#include "profcpu/doctor_row.h"

/* Adds the rows. f->target.pid is set. */
void doctor_report_target(const struct doctor_facts *f, struct doctor_report *report);

#endif
