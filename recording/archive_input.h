/*
 * The bytes of an archive's file as libarchive is to see them. gzip is unpacked here (zlib): libarchive's own filter keeps
 * back what it has unpacked of its last 64 KiB when the file ends too early, which of a small recording is all.
 */
#ifndef RECORDING_ARCHIVE_INPUT_H
#define RECORDING_ARCHIVE_INPUT_H

#include <stdint.h>
#include <sys/types.h>

struct archive_input;

enum archive_input_end {
	ARCHIVE_INPUT_GOES_ON, /* there may be more */
	ARCHIVE_INPUT_WHOLE, /* all was read, and a gzip stream came to its end */
	ARCHIVE_INPUT_CUT, /* the file ends inside of a gzip stream */
	ARCHIVE_INPUT_DAMAGED, /* the gzip stream makes no sense from here on, or has another checksum */
};

/* From fd's present position; it is borrowed, and may be a pipe. 0 or -ENOMEM. */
int archive_input_new(int fd, struct archive_input **ret_in);
void archive_input_free(struct archive_input *in);

/* The next bytes, which are valid until the next call. Their number; 0: no more; -ENOMEM, -errno of reading. */
ssize_t archive_input_next(struct archive_input *in, const void **ret_bytes);

enum archive_input_end archive_input_end(const struct archive_input *in);

/* How much was read of the file. */
uint64_t archive_input_packed(const struct archive_input *in);

#endif
