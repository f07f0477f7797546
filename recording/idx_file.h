/*
 * Files of rows beside perf.data, as samples.idx and offcpu.idx are: little-endian; a header of 24 bytes, then rows of one size, then, where the
 * recorder came to its end, a last row of all ones. Each row has a check in it, of 16 bits: of what it says, of its place and of the recording that it is
 * of. So a row that was changed, moved or added is told from one that was written, and a file that was cut from one that was finished.
 */
#ifndef RECORDING_IDX_FILE_H
#define RECORDING_IDX_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDX_FILE_HEADER_BYTES 24
#define IDX_FILE_ROW_BYTES_MAX 64
#define IDX_FILE_ROWS_MAX ((size_t)1 << 28)

struct idx_file_format {
	char magic[8];
	uint32_t version, row_bytes; /* a multiple of 8, at most IDX_FILE_ROW_BYTES_MAX */
	uint32_t check_off; /* in a row: two bytes that are 0 in what it says */
};

/* One that is written. */
struct idx_file {
	int fd; /* borrowed */
	const struct idx_file_format *format;
	uint64_t identity; /* of the recording: its start as perf.data has it, ns since 1970 */
	uint64_t rows; /* that are in it */
};

/* Writes the header to the beginning of fd. 0 or -errno. */
int idx_file_begin(int fd, const struct idx_file_format *format, uint64_t identity, struct idx_file *ret_file);

/* How many bytes it has, as far as it is known to be written, and would have with so many rows more and the end behind them. */
uint64_t idx_file_bytes(const struct idx_file *file);
uint64_t idx_file_bytes_with(const struct idx_file *file, size_t nrows);

/* Appends rows, all or none, and puts the checks into them. 0 or -errno. */
int idx_file_append(struct idx_file *file, void *rows, size_t nrows);

/* Appends the end. 0 or -errno. */
int idx_file_end(struct idx_file *file);

struct idx_file_state {
	uint64_t identity;
	bool ended; /* it has its end; false: its recorder was killed or had no room, or it was cut */
};

/*
 * Hands over the rows of fd, in their order, with 0 for their checks. Where it has no end, what is torn is left out: a row that was cut off, and one from
 * which on there is nothing but zeros, as an unclean shutdown leaves them. `row` gives 0, -EBADMSG (it makes no sense) or -ENOMEM.
 * 0; -EBADMSG: none of that format, or damaged; -ENOTSUP: of another version; -E2BIG: over IDX_FILE_ROWS_MAX; -ENOMEM; -errno.
 */
int idx_file_read(int fd, const struct idx_file_format *format, int (*row)(void *ctx, const void *row), void *ctx,
		  struct idx_file_state *ret_state, struct parse_error *err);

#endif
