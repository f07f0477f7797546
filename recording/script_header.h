/*
 * Fields in a header line of `perf script` that stackcollapse-perf.pl ignores: CPU, time, and event
 * names that it does not find. profile/script_line.h parses the other fields.
 */
#ifndef RECORDING_SCRIPT_HEADER_H
#define RECORDING_SCRIPT_HEADER_H

#include "profile/sample.h"
#include "profile/script_line.h"

#include <stdbool.h>
#include <stdint.h>

/* Parses a number of at most 31 bits without leading zeros, as perf prints ids. */
bool script_header_id(struct script_part text, int32_t *ret_id);

/*
 * Finds the event's name in the rest of a header (struct script_header) in which the script finds
 * no event: "sched:sched_switch: prev_comm=..". Returns "unknown" if there is none.
 */
struct script_part script_header_event(struct script_part rest);

/*
 * Finds CPU ("[001]") and time ("1704.274854:") in the rest of a header and sets them in *sample.
 */
void script_header_place(struct script_part rest, struct profile_sample *sample);

#endif
