#include "recording/archive_input.h"

#include "container/memory_left.h"

#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define INPUT_BLOCK_BYTES ((size_t)64 << 10)
/* zlib: window up to 32 KiB, with gzip's header and checksum. */
#define INPUT_GZIP_WINDOW (15 + 16)
#define INPUT_MEMORY_PART 2 /* a window may take this part of the memory that is left */
/*
 * Largest header of a zstd frame. libzstd gets it whole: in the rest of a header it would search
 * for frames of its old formats, whose window has no limit.
 */
#define INPUT_HEADER_BYTES 18

enum input_step { INPUT_MORE, INPUT_ENDED, INPUT_WRONG };

struct packing {
	const char *packer, *magic;
	size_t magic_bytes;
	int (*begin)(struct archive_input *in); /* begins a stream: 0 or -ENOMEM */
	/* Unpacks: enum input_step, -ENOMEM, -E2BIG. */
	int (*run)(struct archive_input *in);
};

struct archive_input {
	int fd, error;
	bool begun, inside; /* inside a compressed stream; another one may follow it */
	enum archive_input_end end;
	const struct packing *packing; /* NULL: not compressed, or by another program */
	uint64_t packed;
	uint64_t window_bytes;     /* limit for each window */
	unsigned char *next, *out; /* in block and unpacked */
	size_t rest, room;         /* bytes there */
	z_stream gzip;
	ZSTD_DStream *zstd;
	lzma_stream xz;
	unsigned char block[INPUT_BLOCK_BYTES], unpacked[INPUT_BLOCK_BYTES];
};

/* After a decompressor left so many bytes of input, and so much room for output. */
static void input_moved(struct archive_input *in, size_t rest, size_t room)
{
	in->next += in->rest - rest;
	in->out += in->room - room;
	in->rest = rest;
	in->room = room;
}

static int gzip_begin(struct archive_input *in)
{
	int r = in->gzip.state ? inflateReset(&in->gzip)
			       : inflateInit2(&in->gzip, INPUT_GZIP_WINDOW);

	return r == Z_OK ? 0 : -ENOMEM;
}

static int gzip_run(struct archive_input *in)
{
	z_stream *z = &in->gzip;

	z->next_in = in->next;
	z->avail_in = (uInt)in->rest;
	z->next_out = in->out;
	z->avail_out = (uInt)in->room;
	int r = inflate(z, Z_NO_FLUSH);

	input_moved(in, z->avail_in, z->avail_out);
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	if (r == Z_STREAM_END)
		return INPUT_ENDED;
	return r == Z_OK || r == Z_BUF_ERROR ? INPUT_MORE : INPUT_WRONG;
}

/* One stream unpacks all frames, and refuses each with a larger window. */
static int zstd_begin(struct archive_input *in)
{
	ZSTD_bounds bounds = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
	int window_log = bounds.lowerBound;

	if (in->zstd)
		return 0;
	while (window_log < bounds.upperBound && (uint64_t)2 << window_log <= in->window_bytes)
		window_log++;
	in->zstd = ZSTD_createDStream();
	return !in->zstd || ZSTD_isError(ZSTD_initDStream(in->zstd)) ||
			       ZSTD_isError(ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax,
								   window_log))
		       ? -ENOMEM
		       : 0;
}

static int zstd_run(struct archive_input *in)
{
	ZSTD_inBuffer from = {.src = in->next, .size = in->rest};
	ZSTD_outBuffer to = {.dst = in->out, .size = in->room};
	size_t code = ZSTD_decompressStream(in->zstd, &to, &from);

	input_moved(in, in->rest - from.pos, in->room - to.pos);
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_no_error:
		return code ? INPUT_MORE : INPUT_ENDED;
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	case ZSTD_error_frameParameter_windowTooLarge:
		return -E2BIG;
	default:
		return INPUT_WRONG;
	}
}

/* Each block of the stream is refused if its dictionary is larger. */
static int xz_begin(struct archive_input *in)
{
	lzma_ret r = lzma_stream_decoder(&in->xz, in->window_bytes, 0);

	return r == LZMA_OK ? 0 : -ENOMEM;
}

static int xz_run(struct archive_input *in)
{
	lzma_stream *xz = &in->xz;

	xz->next_in = in->next;
	xz->avail_in = in->rest;
	xz->next_out = in->out;
	xz->avail_out = in->room;
	lzma_ret r = lzma_code(xz, LZMA_RUN);

	input_moved(in, xz->avail_in, xz->avail_out);
	switch (r) {
	case LZMA_OK:
	case LZMA_BUF_ERROR:
		return INPUT_MORE;
	case LZMA_STREAM_END:
		return INPUT_ENDED;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -E2BIG;
	default:
		return INPUT_WRONG;
	}
}

static const struct packing gzip = {"gzip", "\x1f\x8b", 2, gzip_begin, gzip_run};
static const struct packing zstd = {"zstd", "\x28\xb5\x2f\xfd", 4, zstd_begin, zstd_run};
static const struct packing xz = {"xz",
				  "\xfd"
				  "7zXZ",
				  6, xz_begin, xz_run};

/* zstd has also frames without content; pzstd begins with one. */
static bool input_is_skippable(const unsigned char *bytes, size_t len)
{
	return len >= 4 && *bytes >> 4 == 5 && !memcmp(bytes + 1, "\x2a\x4d\x18", 3);
}

/* Returns the packing of a stream that begins with these bytes, or NULL. */
static const struct packing *input_packing(const unsigned char *bytes, size_t len)
{
	static const struct packing *const packings[] = {&gzip, &zstd, &xz};

	if (input_is_skippable(bytes, len))
		return &zstd;
	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
		if (len >= packings[i]->magic_bytes &&
		    !memcmp(bytes, packings[i]->magic, packings[i]->magic_bytes))
			return packings[i];
	return NULL;
}

const char *archive_input_packer(const unsigned char *bytes, size_t len)
{
	const struct packing *p = input_packing(bytes, len);

	return p ? p->packer : NULL;
}

int archive_input_new(int fd, struct archive_input **ret_in)
{
	struct archive_input *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	in->fd = fd;
	*ret_in = in;
	return 0;
}

void archive_input_free(struct archive_input *in)
{
	if (!in)
		return;
	inflateEnd(&in->gzip);
	ZSTD_freeDStream(in->zstd);
	lzma_end(&in->xz);
	free(in);
}

/* Moves the rest to the block's start and fills it; only the last block is shorter. 0 or -errno. */
static int input_fill(struct archive_input *in)
{
	if (in->rest)
		memmove(in->block, in->next, in->rest);
	in->next = in->block;
	while (in->rest < sizeof(in->block)) {
		ssize_t n = read(in->fd, in->block + in->rest, sizeof(in->block) - in->rest);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		in->rest += (size_t)n;
		in->packed += (uint64_t)n;
	}
	return 0;
}

/* Whether another stream begins here, perhaps a cut one. */
static bool input_next_stream(const struct archive_input *in)
{
	const struct packing *p = in->packing;

	if (p == &zstd && input_is_skippable(in->next, in->rest))
		return true;
	return in->rest &&
	       !memcmp(in->next, p->magic, in->rest < p->magic_bytes ? in->rest : p->magic_bytes);
}

/* Unpacks until the buffer is full or the input ends. 0 or -errno. */
static int input_unpack(struct archive_input *in)
{
	while (in->room && in->end == ARCHIVE_INPUT_GOES_ON) {
		size_t room = in->room;
		int r = in->rest < (in->inside ? 1 : INPUT_HEADER_BYTES) ? input_fill(in) : 0;
		bool at_end = !in->rest;

		/* Zeros may be between xz streams. */
		if (!r && !in->inside && in->packing == &xz && in->rest && !*in->next) {
			input_moved(in, in->rest - 1, in->room);
			continue;
		}
		/* Like gzip, ignore bytes after a stream that do not begin another one. */
		if (!r && !in->inside && !input_next_stream(in)) {
			in->end = ARCHIVE_INPUT_WHOLE;
			break;
		}
		if (!r && !in->inside)
			r = in->packing->begin(in);
		if (!r)
			r = in->packing->run(in);
		if (r < 0)
			return r;
		in->inside = r != INPUT_ENDED;
		if (r == INPUT_WRONG)
			in->end = ARCHIVE_INPUT_DAMAGED;
		else if (in->inside && at_end && in->room == room)
			in->end = ARCHIVE_INPUT_CUT;
	}
	return 0;
}

static ssize_t input_next_unpacked(struct archive_input *in, const void **ret_bytes)
{
	in->out = in->unpacked;
	in->room = sizeof(in->unpacked);
	if (!in->error)
		in->error = input_unpack(in);
	size_t len = sizeof(in->unpacked) - in->room;

	/* The error is returned by a later call, after all output. */
	if (in->error && !len)
		return in->error;
	*ret_bytes = in->unpacked;
	return (ssize_t)len;
}

static ssize_t input_next_block(struct archive_input *in, const void **ret_bytes)
{
	ssize_t len = (ssize_t)in->rest;

	in->rest = 0;
	if (!len)
		in->end = ARCHIVE_INPUT_WHOLE;
	*ret_bytes = in->block;
	return len;
}

ssize_t archive_input_next(struct archive_input *in, const void **ret_bytes)
{
	if (in->end != ARCHIVE_INPUT_GOES_ON)
		return 0;
	if (!in->packing) {
		int r = input_fill(in);

		if (r)
			return r;
	}
	if (!in->begun) {
		in->packing = input_packing(in->next, in->rest);
		in->window_bytes = memory_left() / INPUT_MEMORY_PART;
		in->begun = true;
	}
	return in->packing ? input_next_unpacked(in, ret_bytes) : input_next_block(in, ret_bytes);
}

enum archive_input_end archive_input_end(const struct archive_input *in)
{
	return in->end;
}

uint64_t archive_input_packed(const struct archive_input *in)
{
	return in->packed;
}
