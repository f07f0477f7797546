/*
 * Reads the text of `perf script` (all usual -F variants) into a profile. Folding the profile gives
 * what stackcollapse-perf.pl makes of the text. profile/script_line.h has its rules for one line.
 * These are the rules for sequences of lines:
 *
 * - A header opens a sample, frames are added to it, and an empty line ends it. Frames and empty
 *   lines outside a sample are ignored. A sample without frames counts. A sample that the end of
 *   the text cuts off does not count.
 *
 * - A header inside an open sample replaces its header and keeps its frames.
 *
 * - The event to fold is the one that the user chose, or else the first that a header names. A
 *   header of another event opens no sample. Inside an open sample it changes nothing; outside, the
 *   following lines are as without a header.
 *
 * Lines may end in "\r\n". A line that is only "\r" ends a sample; the script ignores it.
 *
 * One difference to the script: a header may replace that of an open sample so that the frames move
 * between a "java" process and another. The script spells the frames by the process that was open
 * when they came; profcpu by the sample's last process.
 *
 * The profile also contains samples of other events. Frames without a module (no dso field) are
 * kept without one. In the perf form, as in the script, they are not frames.
 */
#ifndef RECORDING_SCRIPT_READ_H
#define RECORDING_SCRIPT_READ_H

#include "base/error.h"
#include "profile/profile.h"
#include "recording/script_options.h"

#include <stdbool.h>

#define SCRIPT_LINE_MAX ((size_t)1 << 20) /* bytes; the rest of a longer line is ignored */
/* Frames of one sample; more are counted as bad lines. */
#define SCRIPT_FRAMES_MAX ((size_t)1 << 17)

struct script_text_stats {
	uint64_t lines, samples;
	uint64_t cut_stacks; /* samples whose stacks have fewer frames, because memory is short */
	uint64_t bad_lines; /* neither header, frame, source line, comment nor empty; or too long */
	uint64_t unused_lines; /* frames and source lines outside a sample */
	/* Text id of the first event that a header names, which is folded; PROFILE_NONE: none. */
	uint32_t first_event;
	/*
	 * The text ends inside a sample, after a frame or within a line. This sample is ignored. A
	 * header alone at the end does not count, because perf writes an event without stacks in
	 * one line.
	 */
	bool unended;
};

/*
 * Reads from fd (a file or a pipe, borrowed) to its end. Returns 0; -EBADMSG: not perf script's
 * text, or it cannot be folded; -ENOMEM; -E2BIG; -errno of read. *err has the reason of -EBADMSG.
 *
 * Memory grows with distinct frames, stacks and threads. Known lines of frames are found by a
 * 64-bit hash: lines with equal hashes count as equal.
 */
int script_text_read(int fd, const struct script_text_options *options, struct profile *profile,
		     struct script_text_stats *ret_stats, struct parse_error *err);

#endif
