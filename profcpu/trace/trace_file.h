/* The file of a trace, which grows as events come. */
#ifndef PROFCPU_TRACE_TRACE_FILE_H
#define PROFCPU_TRACE_TRACE_FILE_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_file {
	int fd;           /* -1: not open */
	int dir_fd;       /* of name; borrowed */
	const char *name; /* borrowed; "-": standard output */
	bool special;     /* a device or a pipe: nothing can be taken back from it */
	uint64_t bytes;   /* written */
	int error;        /* of the first failed write; later bytes are dropped */
	/* With special: the last bytes, not written yet, because they may be the stream's end. */
	unsigned char held[4];
	size_t nheld;
};

#define TRACE_FILE_NONE ((struct trace_file){.fd = -1})

/*
 * Creates the file, or replaces an old one. Writes into a device or FIFO of ours or of root, such
 * as /dev/null. 0; -errno of file_create.
 */
int trace_file_create(struct trace_file *f, const char *name);

/* Creates a file in a directory of ours, which is borrowed. 0; -errno of file_create. */
int trace_file_create_in(struct trace_file *f, int dir_fd, const char *name);

/* Takes bytes of the stream. Always 0: the session must be read to its end in any case. */
int trace_file_take(void *file, const void *data, size_t len);

/*
 * Cuts the file after its last whole object, and adds what the stream lacks: more, which has its
 * end, or only its end. So all tools can read it. whole: bytes up to that object's end. version: of
 * the format. more: NULL: none. Writes nothing behind a special file's damaged object. 0; -errno.
 */
int trace_file_mend(struct trace_file *f, uint64_t whole, unsigned version,
		    const struct outbuf *more);

/* Closes the file; removes it if nothing was written. 0; the first error of the file. */
int trace_file_close(struct trace_file *f);

#endif
