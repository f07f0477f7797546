#include "recording/idx_file.h"

#include "base/file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK_BYTES 4096

int idx_file_begin(int fd, const struct idx_file_format *format)
{
	return file_write_all(fd, format, sizeof(*format));
}

static bool is_zero(const unsigned char *row, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (row[i])
			return false;
	return true;
}

/* Rows at `off`. 1; 0: they end here; -errno with *err. */
static int take_rows(const unsigned char *rows, size_t n, size_t row_bytes, uint64_t off, int (*row)(void *ctx, const void *row),
		     void *ctx, struct parse_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned char *at = rows + i * row_bytes;

		if (is_zero(at, row_bytes))
			return 0;
		int r = row(ctx, at);

		if (r)
			return parse_fail(err, r, r == -ENOMEM ? "out of memory" : "a row makes no sense", off + i * row_bytes);
	}
	return 1;
}

int idx_file_read(int fd, const struct idx_file_format *format, int (*row)(void *ctx, const void *row), void *ctx,
		  struct parse_error *err)
{
	_Alignas(8) unsigned char rows[CHUNK_BYTES];
	size_t row_bytes = format->row_bytes, at_once = sizeof(rows) / row_bytes;
	struct idx_file_format header;
	struct stat st;
	int r = fstat(fd, &st) ? -errno : file_pread_all(fd, &header, sizeof(header), 0);

	if (r || memcmp(header.magic, format->magic, sizeof(header.magic)) != 0)
		return parse_fail(err, r && r != -ENODATA ? r : -EBADMSG, "no index of its kind", 0);
	if (header.version != format->version || header.row_bytes != format->row_bytes)
		return parse_fail(err, -ENOTSUP, "an index of another version", 8);
	uint64_t n = ((uint64_t)st.st_size - sizeof(header)) / row_bytes;

	if (n > IDX_FILE_ROWS_MAX)
		return parse_fail(err, -E2BIG, "too many rows", 0);
	r = 1;
	for (uint64_t at = 0; at < n && r > 0; at += at_once) {
		size_t some = n - at < at_once ? (size_t)(n - at) : at_once;
		uint64_t off = sizeof(header) + at * row_bytes;

		r = file_pread_all(fd, rows, some * row_bytes, off);
		if (r)
			return parse_fail(err, r, "rows cannot be read", off);
		r = take_rows(rows, some, row_bytes, off, row, ctx, err);
	}
	return r < 0 ? r : 0;
}
