#include "recording/idx_file.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define CHUNK_BYTES 4096
#define TEAR_BYTES 65536 /* bytes after a torn row that must be zeros */

struct idx_file_header {
	char magic[8];
	uint32_t version, row_bytes;
	uint64_t identity;
};
_Static_assert(sizeof(struct idx_file_header) == IDX_FILE_HEADER_BYTES, "on-disk layout");

/* Computes the check of a row whose check is 0. */
static uint16_t check_of(const struct idx_file_format *format, uint64_t identity, uint64_t index,
			 const void *row)
{
	const uint64_t where[2] = {identity, index};
	uint32_t crc = (uint32_t)crc32(crc32(0, (const void *)where, sizeof(where)), row,
				       format->row_bytes);

	return (uint16_t)(crc ^ crc >> 16);
}

static void make_end(const struct idx_file_format *format, unsigned char *row)
{
	memset(row, 0xff, format->row_bytes);
	memset(row + format->check_off, 0, sizeof(uint16_t));
}

int idx_file_begin(int fd, const struct idx_file_format *format, uint64_t identity,
		   struct idx_file *ret_file)
{
	struct idx_file_header header = {
		.version = format->version, .row_bytes = format->row_bytes, .identity = identity};

	memcpy(header.magic, format->magic, sizeof(header.magic));
	*ret_file = (struct idx_file){.fd = fd, .format = format, .identity = identity};
	return file_write_all(fd, &header, sizeof(header));
}

uint64_t idx_file_bytes(const struct idx_file *file)
{
	return IDX_FILE_HEADER_BYTES + file->rows * file->format->row_bytes;
}

uint64_t idx_file_bytes_with(const struct idx_file *file, size_t nrows)
{
	return idx_file_bytes(file) + (nrows + 1) * file->format->row_bytes;
}

int idx_file_append(struct idx_file *file, void *rows, size_t nrows)
{
	const struct idx_file_format *format = file->format;

	if (!nrows)
		return 0;
	for (size_t i = 0; i < nrows; i++) {
		unsigned char *row = (unsigned char *)rows + i * format->row_bytes;
		uint16_t check;

		memset(row + format->check_off, 0, sizeof(check));
		check = check_of(format, file->identity, file->rows + i, row);
		memcpy(row + format->check_off, &check, sizeof(check));
	}
	int r = file_pwrite_all(file->fd, rows, nrows * format->row_bytes, idx_file_bytes(file));

	if (!r)
		file->rows += nrows;
	return r;
}

int idx_file_end(struct idx_file *file)
{
	_Alignas(8) unsigned char row[IDX_FILE_ROW_BYTES_MAX];

	make_end(file->format, row);
	return idx_file_append(file, row, 1);
}

struct reading {
	const struct idx_file_format *format;
	struct idx_file_state state;
	unsigned char end[IDX_FILE_ROW_BYTES_MAX];
	uint64_t index, torn_off; /* torn_off: offset of the first torn row; 0: none */
	int (*row)(void *ctx, const void *row);
	void *ctx;
	struct parse_error *err;
};

static bool is_zero(const unsigned char *row, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (row[i])
			return false;
	return true;
}

/* Verifies the row's check and sets it to 0. */
static bool verify_check(const struct reading *reading, unsigned char *row)
{
	uint16_t check;

	memcpy(&check, row + reading->format->check_off, sizeof(check));
	memset(row + reading->format->check_off, 0, sizeof(check));
	return check == check_of(reading->format, reading->state.identity, reading->index, row);
}

/* 0, or -errno with *err. */
static int take_row(struct reading *reading, unsigned char *row, uint64_t off)
{
	size_t bytes = reading->format->row_bytes;
	bool zero = is_zero(row, bytes);
	int r;

	if (reading->torn_off)
		return zero ? 0
			    : parse_fail(reading->err, -EBADMSG, "a row is damaged",
					 reading->torn_off);
	if (reading->state.ended)
		return parse_fail(reading->err, -EBADMSG, "data follow its end", off);
	if (zero || !verify_check(reading, row)) {
		reading->torn_off = off;
		return 0;
	}
	reading->index++;
	reading->state.ended = !memcmp(row, reading->end, bytes);
	if (reading->state.ended)
		return 0;
	r = reading->row(reading->ctx, row);
	return r ? parse_fail(reading->err, r,
			      r == -ENOMEM   ? "out of memory"
			      : r == -ENOSPC ? "it needs more memory than is left"
					     : "a row is invalid",
			      off)
		 : 0;
}

static int take_rows(struct reading *reading, int fd, uint64_t size)
{
	_Alignas(8) unsigned char rows[CHUNK_BYTES];
	size_t row_bytes = reading->format->row_bytes,
	       at_once = sizeof(rows) / row_bytes * row_bytes;
	int r = 0;

	for (uint64_t off = IDX_FILE_HEADER_BYTES; off + row_bytes <= size && !r; off += at_once) {
		size_t some = size - off < at_once ? (size_t)(size - off) / row_bytes * row_bytes
						   : at_once;

		if (reading->torn_off && off > reading->torn_off + TEAR_BYTES)
			break;
		r = file_pread_all(fd, rows, some, off);
		if (r)
			return parse_fail(reading->err, r, "its rows cannot be read", off);
		for (size_t at = 0; at < some && !r; at += row_bytes)
			r = take_row(reading, rows + at, off + at);
	}
	if (!r && reading->state.ended && (size - IDX_FILE_HEADER_BYTES) % row_bytes)
		r = parse_fail(reading->err, -EBADMSG, "data follow its end", size);
	return r;
}

int idx_file_read(int fd, const struct idx_file_format *format,
		  int (*row)(void *ctx, const void *row), void *ctx,
		  struct idx_file_state *ret_state, struct parse_error *err)
{
	struct reading reading = {.format = format, .row = row, .ctx = ctx, .err = err};
	struct idx_file_header header;
	struct stat st;
	int r = fstat(fd, &st) ? -errno : file_pread_all(fd, &header, sizeof(header), 0);

	if (r || memcmp(header.magic, format->magic, sizeof(header.magic)) != 0)
		return parse_fail(err, r && r != -ENODATA ? r : -EBADMSG,
				  "it is not an index of this kind", 0);
	if (header.version != format->version || header.row_bytes != format->row_bytes)
		return parse_fail(err, -ENOTSUP, "it was written by another version", 8);
	if (((uint64_t)st.st_size - sizeof(header)) / format->row_bytes > IDX_FILE_ROWS_MAX)
		return parse_fail(err, -E2BIG, "it has too many rows", 0);
	reading.state.identity = header.identity;
	make_end(format, reading.end);
	r = take_rows(&reading, fd, (uint64_t)st.st_size);
	if (!r)
		*ret_state = reading.state;
	return r;
}
