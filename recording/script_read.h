/*
 * Reads the text of `perf script` (all usual -F variants) into a profile, keeping of each line exactly what
 * stackcollapse-perf.pl makes of it; profile/script_line.h has its rules for one line. For lines in sequence they are:
 *
 *  - A header opens a sample, frames add to it, an empty line ends it. Frames and empty lines outside of a sample mean nothing.
 *    A sample without frames counts. What the end of the text cuts off does not.
 *  - A header inside of an open sample takes its place and leaves it its frames.
 *  - The event to fold is the one that was asked for, else the first that a header names. A header of another event opens
 *    no sample: inside of an open one it changes nothing, and what follows it outside is as without a header.
 *
 * Lines may end in "\r\n": a line that is only "\r" ends a sample (to the script it has no meaning).
 *
 * One thing is not as in the script: where a header takes over the frames of a "java" process for another, or the other way
 * round, it spells frames by the process that was open when they came, here by the one that the sample ends with.
 *
 * Samples of other events than the one to fold are in the profile too. Frames without a module (no dso field) are kept
 * without one; to the script, and in the perf form, they are none.
 */
#ifndef RECORDING_SCRIPT_READ_H
#define RECORDING_SCRIPT_READ_H

#include "base/error.h"
#include "base/outbuf.h"
#include "profile/profile.h"

#include <stdbool.h>

#define SCRIPT_LINE_MAX ((size_t)1 << 20) /* bytes; the rest of a longer line is not looked at */
#define SCRIPT_FRAMES_MAX ((size_t)1 << 17) /* of one sample; more are counted as bad lines */

/* A zeroed struct is the usual case. */
struct script_text_options {
	bool srcline; /* each frame's line is followed by its source line (perf script -F +srcline) */
	const char *event_filter; /* the event to fold; NULL or "": the first */
	/* The full form of the name of JIT code, appended to out; NULL: perf's. Text as in the perf map. */
	void (*full_name)(const char *name, size_t len, struct outbuf *out);
};

struct script_text_stats {
	uint64_t lines, samples;
	uint64_t bad_lines; /* no line of perf script: neither header, frame, source line, comment nor empty; or too long */
	uint64_t unused_lines; /* perf script's, but with no place in a profile: frames and source lines outside of a sample */
	uint32_t first_event; /* text id of the first event that a header names: what is folded; PROFILE_NONE: none names one */
	bool unended; /* the text ends inside of a sample, which is not taken: behind a frame, or inside of a line. A header
		       * alone at the end may be a sample of an event without stacks, which perf writes in one line. */
};

/*
 * Reads from fd (a file or a pipe, borrowed) to its end. 0; -EBADMSG when it is not perf script's text, or not one that can
 * be folded, and *err says why; -ENOMEM; -E2BIG; -errno of read. Memory grows with distinct frames, stacks and threads.
 * A frame's line that was seen before costs a hash of 64 bits: equal hashes are taken for equal lines.
 */
int script_text_read(int fd, const struct script_text_options *options, struct profile *profile,
		     struct script_text_stats *ret_stats, struct parse_error *err);

#endif
