/* Files of rows beside perf.data, as samples.idx and offcpu.idx are: little-endian; a header of 16 bytes, then rows of one size. */
#ifndef RECORDING_IDX_FILE_H
#define RECORDING_IDX_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define IDX_FILE_HEADER_BYTES 16
#define IDX_FILE_ROW_BYTES_MAX 64
#define IDX_FILE_ROWS_MAX ((size_t)1 << 28)

struct idx_file_format {
	char magic[8];
	uint32_t version, row_bytes; /* at most IDX_FILE_ROW_BYTES_MAX */
};
_Static_assert(sizeof(struct idx_file_format) == IDX_FILE_HEADER_BYTES, "on-disk layout: it is the header");

/* Writes the header to the beginning of fd. 0 or -errno. */
int idx_file_begin(int fd, const struct idx_file_format *format);

/*
 * Hands over the rows of fd, in their order. A row that was cut off is left out, and all from one on that is zero, as an unclean shutdown
 * leaves them. `row` gives 0, -EBADMSG (it makes no sense) or -ENOMEM. 0; -EBADMSG: none of that format, or damaged; -ENOTSUP: of another
 * version; -E2BIG: over IDX_FILE_ROWS_MAX; -ENOMEM; -errno.
 */
int idx_file_read(int fd, const struct idx_file_format *format, int (*row)(void *ctx, const void *row), void *ctx,
		  struct parse_error *err);

#endif
