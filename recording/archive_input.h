/*
 * Reads the bytes of an archive's file for libarchive, and unpacks gzip, zstd and xz. A window for
 * them takes at most half of the memory that is left. The filters of libarchive have no such limit.
 * Its gzip filter also withholds up to 64 KiB of output if the file ends early. A small recording
 * would be lost completely.
 */
#ifndef RECORDING_ARCHIVE_INPUT_H
#define RECORDING_ARCHIVE_INPUT_H

#include <stdint.h>
#include <sys/types.h>

struct archive_input;

enum archive_input_end {
	ARCHIVE_INPUT_GOES_ON, /* more bytes may follow */
	ARCHIVE_INPUT_WHOLE, /* the file was read completely; a compressed stream, if any, ended */
	ARCHIVE_INPUT_CUT,   /* the file ends inside a compressed stream */
	ARCHIVE_INPUT_DAMAGED, /* the compressed stream is invalid, or its checksum is wrong */
};

/* Starts at fd's present position. fd is borrowed and may be a pipe. 0 or -ENOMEM. */
int archive_input_new(int fd, struct archive_input **ret_in);
void archive_input_free(struct archive_input *in);

/*
 * Returns the number of next bytes; 0: no more; -E2BIG: a window is larger than half of the memory
 * that is left; -ENOMEM, -errno of reading. *ret_bytes is valid until the next call.
 */
ssize_t archive_input_next(struct archive_input *in, const void **ret_bytes);

enum archive_input_end archive_input_end(const struct archive_input *in);

/*
 * Returns the program that unpacks a file with these first bytes: "gzip", "zstd" or "xz"; NULL:
 * none of them. The name is static.
 */
const char *archive_input_packer(const unsigned char *bytes, size_t len);

/* Returns how many bytes of the file were read. */
uint64_t archive_input_packed(const struct archive_input *in);

#endif
