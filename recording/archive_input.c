#include "recording/archive_input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define INPUT_BLOCK_BYTES ((size_t)64 << 10)
/* zlib: window up to 32 KiB, with gzip's header and checksum. */
#define INPUT_GZIP_WINDOW (15 + 16)
#define INPUT_GZIP_FIRST 0x1f
#define INPUT_GZIP_SECOND 0x8b

struct archive_input {
	int fd;
	bool begun, is_gzip;
	bool between; /* a gzip stream ended; another one may follow */
	enum archive_input_end end;
	uint64_t packed;
	z_stream z;
	unsigned char block[INPUT_BLOCK_BYTES], unpacked[INPUT_BLOCK_BYTES];
};

int archive_input_new(int fd, struct archive_input **ret_in)
{
	struct archive_input *in = calloc(1, sizeof(*in));

	if (!in || inflateInit2(&in->z, INPUT_GZIP_WINDOW) != Z_OK) {
		free(in);
		return -ENOMEM;
	}
	in->fd = fd;
	*ret_in = in;
	return 0;
}

void archive_input_free(struct archive_input *in)
{
	if (in)
		inflateEnd(&in->z);
	free(in);
}

/* Fills the block; only the last block is shorter. 0 or -errno. */
static int input_fill(struct archive_input *in)
{
	size_t len = 0;

	while (len < sizeof(in->block)) {
		ssize_t n = read(in->fd, in->block + len, sizeof(in->block) - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	in->packed += len;
	in->z.next_in = in->block;
	in->z.avail_in = (uInt)len;
	return 0;
}

/* Unpacks until the buffer is full or the input ends. 0 or -errno. */
static int input_gunzip(struct archive_input *in)
{
	z_stream *z = &in->z;

	while (z->avail_out && in->end == ARCHIVE_INPUT_GOES_ON) {
		int r = z->avail_in ? 0 : input_fill(in);

		if (r)
			return r;
		/* Like gzip, ignore bytes after a stream that do not begin another one. */
		if (in->between && (!z->avail_in || *z->next_in != INPUT_GZIP_FIRST))
			in->end = ARCHIVE_INPUT_WHOLE;
		else if (!z->avail_in)
			in->end = ARCHIVE_INPUT_CUT;
		if (in->end != ARCHIVE_INPUT_GOES_ON)
			break;
		if (in->between)
			inflateReset(z);
		r = inflate(z, Z_NO_FLUSH);
		if (r == Z_MEM_ERROR)
			return -ENOMEM;
		in->between = r == Z_STREAM_END;
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			in->end = ARCHIVE_INPUT_DAMAGED;
	}
	return 0;
}

static ssize_t input_next_unpacked(struct archive_input *in, const void **ret_bytes)
{
	in->z.next_out = in->unpacked;
	in->z.avail_out = sizeof(in->unpacked);
	int r = input_gunzip(in);
	size_t len = sizeof(in->unpacked) - in->z.avail_out;

	/* The error is returned by a later call, after all output. */
	if (r && !len)
		return r;
	*ret_bytes = in->unpacked;
	return (ssize_t)len;
}

static ssize_t input_next_block(struct archive_input *in, const void **ret_bytes)
{
	ssize_t len = (ssize_t)in->z.avail_in;

	in->z.avail_in = 0;
	if (!len)
		in->end = ARCHIVE_INPUT_WHOLE;
	*ret_bytes = in->block;
	return len;
}

ssize_t archive_input_next(struct archive_input *in, const void **ret_bytes)
{
	if (in->end != ARCHIVE_INPUT_GOES_ON)
		return 0;
	if (!in->begun || !in->is_gzip) {
		int r = input_fill(in);

		if (r)
			return r;
	}
	if (!in->begun)
		in->is_gzip = in->z.avail_in >= 2 && in->block[0] == INPUT_GZIP_FIRST &&
			      in->block[1] == INPUT_GZIP_SECOND;
	in->begun = true;
	return in->is_gzip ? input_next_unpacked(in, ret_bytes) : input_next_block(in, ret_bytes);
}

enum archive_input_end archive_input_end(const struct archive_input *in)
{
	return in->end;
}

uint64_t archive_input_packed(const struct archive_input *in)
{
	return in->packed;
}
