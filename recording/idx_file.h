/*
 * Reads and writes files of rows beside perf.data: samples.idx and offcpu.idx. All values are
 * little-endian. A file has a header of 24 bytes and rows of one size. If the recorder ended
 * normally, a last row of all ones follows.
 *
 * Each row contains a 16-bit check of its contents, its place and its recording. It detects rows
 * that were changed, moved or added. The last row detects files that were cut off.
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

/* Bytes that the rows of a file may take of the memory that is left. Sorting takes as much again.
 */
#define IDX_FILE_BYTES(memory) ((memory) / 3 + ((uint64_t)1 << 20))

struct idx_file_format {
	char magic[8];
	/* row_bytes: a multiple of 8, at most IDX_FILE_ROW_BYTES_MAX */
	uint32_t version, row_bytes;
	/* Offset of the check in a row: two bytes that writers leave 0. */
	uint32_t check_off;
};

/* A file that is being written. */
struct idx_file {
	int fd; /* borrowed */
	const struct idx_file_format *format;
	uint64_t identity; /* start of the recording as in perf.data, ns since 1970 */
	uint64_t rows;     /* rows in the file */
};

/* Writes the header at the beginning of fd. 0 or -errno. */
int idx_file_begin(int fd, const struct idx_file_format *format, uint64_t identity,
		   struct idx_file *ret_file);

/*
 * idx_file_bytes: bytes that are known to be written. idx_file_bytes_with: bytes with nrows more
 * rows and the end.
 */
uint64_t idx_file_bytes(const struct idx_file *file);
uint64_t idx_file_bytes_with(const struct idx_file *file, size_t nrows);

/* Appends all rows or none, and fills in their checks. 0 or -errno. */
int idx_file_append(struct idx_file *file, void *rows, size_t nrows);

/* Appends the row that marks the end. 0 or -errno. */
int idx_file_end(struct idx_file *file);

struct idx_file_state {
	uint64_t identity;
	/* false: the recorder was killed or ran out of disk space, or the file was cut */
	bool ended;
};

/*
 * Calls `row` for each row of fd in order, with 0 as its check. `row` returns 0, -EBADMSG (the row
 * is invalid), -ENOSPC (too little memory is left) or -ENOMEM.
 *
 * If the file has no end, torn rows are left out: a row that was cut off, and rows followed only by
 * zeros, which an unclean shutdown leaves.
 *
 * Returns 0; -EBADMSG: not this format, or damaged; -ENOTSUP: another version; -E2BIG: more than
 * IDX_FILE_ROWS_MAX; -ENOSPC; -ENOMEM; -errno.
 */
int idx_file_read(int fd, const struct idx_file_format *format,
		  int (*row)(void *ctx, const void *row), void *ctx,
		  struct idx_file_state *ret_state, struct parse_error *err);

#endif
