/*
 * The report of `profcpu doctor`: one row for each requirement of recording, with the effect and
 * the remedy of a missing one.
 */
#ifndef PROFCPU_DOCTOR_REPORT_H
#define PROFCPU_DOCTOR_REPORT_H

#include "profcpu/doctor_row.h"

#define DOCTOR_KERNEL_MAJOR 5 /* Linux 5.4 is the oldest supported kernel */
#define DOCTOR_KERNEL_MINOR 4

/* Makes the report from facts alone. It reads nothing of this machine. */
void doctor_report_facts(const struct doctor_facts *facts, struct doctor_report *ret_report);

#endif
