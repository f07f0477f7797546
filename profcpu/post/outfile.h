/* The output of a command: the file of -o, or stdout. */
#ifndef PROFCPU_POST_OUTFILE_H
#define PROFCPU_POST_OUTFILE_H

#include "base/replace.h"

#include <stdbool.h>

/*
 * A plain file appears whole or not at all, and replaces an older one. Other files (/dev/stdout, a
 * terminal, a pipe) are written in place.
 *
 * A link of root or of our user is followed. Another link is replaced: in /tmp it could lead to any
 * file that our user may write.
 */
struct outfile {
	int fd;     /* write here */
	int dir_fd; /* directory of a plain file; -1: none */
	bool replaces;
	struct replace replace;
};

/*
 * Opens path; NULL and "-" mean stdout. mode: of base/replace.h. A replaced file of our user keeps
 * its mode; a private one only its owner's part. 0 (post_outfile_close ends it) or -errno.
 */
int post_outfile_open(const char *path, mode_t mode, struct outfile *ret_file);

/* Reports by log_error that path cannot be written. what ("the picture") is printed for stdout. */
void post_outfile_failed(const char *path, const char *what, int error);

/*
 * Ends the output. With error 0 a plain file gets its place, else it is discarded. Returns error,
 * or -errno if giving it its place failed.
 */
int post_outfile_close(struct outfile *file, int error);

#endif
