/* The text of `perf script`: read into a profile, and written from one. */
#ifndef RECORDING_SCRIPT_TEXT_H
#define RECORDING_SCRIPT_TEXT_H

#include "base/error.h"
#include "base/outbuf.h"
#include "profile/profile.h"

struct script_text_stats {
	uint64_t lines, samples;
	uint64_t bad_lines; /* neither header, frame, comment nor blank */
};

/*
 * Reads the text from fd to its end (a file or a pipe), all usual -F variants, into the profile, keeping of each frame
 * exactly what stackcollapse-perf.pl sees: address, raw name without offset, module, srcline. 0; -EBADMSG when nothing in
 * it is perf script's text; -errno; *err. Lines over 1 MiB are cut and counted as bad.
 */
int script_text_read(int fd, struct profile *profile, struct script_text_stats *ret_stats,
		     struct parse_error *err);

/*
 * Writes all samples in their order as `perf script` prints comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso.
 * Folded again it gives the same as folding the profile. 0 or the first write error.
 */
int script_text_write(struct profile *profile, struct outbuf *out);

#endif
