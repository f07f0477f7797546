/* One frame of the text of perf script as a frame of a profile. */
#ifndef RECORDING_SCRIPT_FRAME_H
#define RECORDING_SCRIPT_FRAME_H

#include "profile/script_line.h"
#include "recording/script_read.h"

/*
 * The frame of a line (without its newline) such that script_put_frame gives a line that script_line_frame takes apart in the
 * same way. *ret_sources (may be NULL) is the number of source lines that belong to it. A line of an address and a symbol
 * only is a frame without a module. 0; -ENOENT when the line is no frame; -ENOMEM, -E2BIG.
 */
int script_frame_parse(struct profile *profile, const char *line, size_t len,
		       const struct script_text_options *options, struct profile_frame *ret_frame, size_t *ret_sources);

#endif
