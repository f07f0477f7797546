/* The file that a command writes its output to: -o FILE, or stdout. */
#ifndef PROFCPU_OUTFILE_H
#define PROFCPU_OUTFILE_H

#include "base/replace.h"

#include <stdbool.h>

/*
 * A plain file appears whole or not at all, in the place of an older one. What is no plain file (/dev/stdout, a terminal, a
 * pipe) is written to as it stands. A link is followed where root or we made it; one that somebody else put there is
 * replaced, as all that stands in the place of our other outputs: in /tmp it could lead to any file that we may write.
 */
struct outfile {
	int fd; /* write here */
	int dir_fd; /* of a plain file; -1: none */
	bool replaces;
	struct replace replace;
};

/* NULL or "-" is stdout. 0 (ended by outfile_close) or -errno. */
int outfile_open(const char *path, struct outfile *ret_file);

/* Says by log_error that it cannot be written; what: "the picture", where path is stdout. */
void outfile_failed(const char *path, const char *what, int error);

/* Ends it: with error 0 what was written is put in its place, else it is thrown away where that can be. Gives error, or the
 * -errno of putting it there. */
int outfile_close(struct outfile *file, int error);

#endif
