/* Parses a frame of perf script's text into a frame of a profile. */
#ifndef RECORDING_SCRIPT_FRAME_H
#define RECORDING_SCRIPT_FRAME_H

#include "profile/profile.h"
#include "profile/script_line.h"
#include "recording/script_options.h"

/*
 * Parses a line without its newline. Writing the frame with script_line_put_frame gives a line that
 * script_line_frame parses into the same parts. A line with only an address and a symbol becomes a
 * frame without a module. *ret_sources (may be NULL): number of source lines that belong to the
 * frame. 0; -ENOENT: the line is not a frame; -ENOMEM, -E2BIG.
 */
int script_frame_parse(struct profile *profile, const char *line, size_t len,
		       const struct script_text_options *options, struct profile_frame *ret_frame,
		       size_t *ret_sources);

#endif
