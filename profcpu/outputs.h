/* The files that are derived from a recording: picture, folded stacks, perf script text, report, archive. */
#ifndef PROFCPU_OUTPUTS_H
#define PROFCPU_OUTPUTS_H

#include "profcpu/input.h"
#include "profile/profile.h"
#include "recording/offcpu_idx.h"
#include "symbols/audit.h"

#include <stdbool.h>

#define OUTPUTS_SCRIPT_IN_ARCHIVE_MAX ((uint64_t)64 << 20) /* larger text stays out of the archive */

struct outputs_options {
	const char *dir; /* for messages */
	int dir_fd; /* where they are written; borrowed */
	const char *title; /* of the picture */
	const char *first_event; /* of text: the event that is folded; NULL: the first with samples */
	const struct input_result *result; /* for the report, as audit, which is empty for text; borrowed */
	const struct audit *audit;
	const struct offcpu_idx *offcpu; /* of the recording; borrowed; NULL: it has none */
	bool in_place; /* dir_fd is the recording that they are of */
	bool archive; /* write prof.tar.gz: dir_fd is a whole recording */
	bool lines; /* folded stacks have source lines; the script does not: its readers expect one line a frame */
	bool idle; /* waits that are idle are shown */
	bool script; /* write perf_script.out; false where it was the input and stands there already */
};

/*
 * Writes them, the picture first, each whole or not at all. What cannot be written is said by log_error and does not
 * keep the others from being written. 0, or the first error. *ret_any: whether one was written.
 */
int outputs_write(struct profile *profile, const struct outputs_options *options, bool *ret_any);

#endif
