/* Cuts the file, or a pipe, into records. */
#include "base/file.h"
#include "recording/perfdata_impl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/*
 * perf 6.16 and some later versions write COMPRESSED2 records with an overflowed header.size. A
 * block of more than 65,519 compressed bytes becomes several records without padding. The first one
 * has the sizes of the whole block; its data_size reveals this. The other records of the block have
 * a correct header.size and no data_size.
 */
#define COMPRESSED2_HEAD_BYTES 16
#define COMPRESSED2_PAYLOAD_MAX (PERFDATA_RECORD_BYTES_MAX - COMPRESSED2_HEAD_BYTES)
#define COMPRESSED2_GROUP_MAX ((uint64_t)1 << 30)

static int perfdata_read(struct perfdata_input *in, void *data, size_t len)
{
	if (in->end_off - in->read_off < len)
		len = (size_t)(in->end_off - in->read_off);
	for (;;) {
		ssize_t n = !len           ? 0
			    : in->seekable ? pread(in->fd, data, len, (off_t)in->read_off)
					   : read(in->fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		in->eof = !n;
		in->read_off += (uint64_t)n;
		return (int)n;
	}
}

/* Starts a new chunk with the unparsed rest of the old one. */
static int perfdata_input_turn(struct perfdata *d)
{
	struct perfdata_input *in = &d->in;
	struct perfdata_chunk *old = in->chunk, *fresh;
	size_t left = old ? old->len - in->pos : 0;
	int r = perfdata_chunk_get(&d->pool, &fresh);

	if (r)
		return r;
	fresh->can_reread = in->seekable;
	fresh->file_off = in->read_off - left;
	if (left)
		memcpy(fresh->bytes, old->bytes + in->pos, left);
	fresh->len = left;
	in->chunk = fresh;
	in->pos = 0;
	perfdata_chunk_put_filled(&d->pool, old);
	return 0;
}

int perfdata_input_fill(struct perfdata *d, size_t need)
{
	struct perfdata_input *in = &d->in;

	while (!in->chunk || in->chunk->len - in->pos < need) {
		if (in->eof)
			return 0;
		if (!in->chunk || in->chunk->cap - in->pos < need ||
		    in->chunk->len == in->chunk->cap) {
			int r = perfdata_input_turn(d);

			if (r)
				return parse_fail(&d->end_error, r, "out of memory", in->read_off);
		}
		int n = perfdata_read(in, in->chunk->bytes + in->chunk->len,
				      in->chunk->cap - in->chunk->len);

		if (n < 0)
			return parse_fail(&d->end_error, n, "the file could not be read",
					  in->read_off);
		in->chunk->len += (size_t)n;
	}
	return 1;
}

/* Skips n bytes by reading them. */
static int perfdata_input_drain(struct perfdata *d, uint64_t n)
{
	struct perfdata_input *in = &d->in;

	while (n && !in->eof) {
		int r = perfdata_input_turn(d);

		if (r)
			return parse_fail(&d->end_error, r, "out of memory", in->read_off);
		r = perfdata_read(in, in->chunk->bytes,
				  n < in->chunk->cap ? (size_t)n : in->chunk->cap);
		if (r < 0)
			return parse_fail(&d->end_error, r, "the file could not be read",
					  in->read_off);
		n -= (uint64_t)r;
	}
	if (n)
		d->stats.truncated_at = in->read_off;
	return 0;
}

int perfdata_input_skip(struct perfdata *d, uint64_t n)
{
	struct perfdata_input *in = &d->in;
	uint64_t have = in->chunk->len - in->pos;
	int r = 0;

	if (n <= have) {
		in->pos += (size_t)n;
		return 0;
	}
	n -= have;
	in->pos = in->chunk->len;
	if (!in->seekable) {
		r = perfdata_input_drain(d, n);
	} else if (n <= in->stop_off - in->read_off) {
		in->read_off += n;
	} else {
		d->stats.truncated_at = in->read_off - have;
		in->read_off = in->stop_off;
		in->eof = true;
	}
	if (!r && perfdata_input_turn(d))
		r = parse_fail(&d->end_error, -ENOMEM, "out of memory", in->read_off);
	return r;
}

/* Handles the end of the data, with `left` bytes of an incomplete record. */
static int perfdata_input_end(struct perfdata *d)
{
	struct perfdata_input *in = &d->in;
	const struct perfdata_unzip *z = &in->unzip;
	size_t left = in->chunk ? in->chunk->len - in->pos : 0;

	if (d->stats.truncated_at)
		return 0;
	if (left || (in->end_off != UINT64_MAX && in->read_off < in->end_off))
		d->stats.truncated_at = in->read_off - left;
	else if (z->chunk && z->chunk->len > z->pos)
		d->stats.truncated_at = z->block_off;
	return 0;
}

static uint64_t perfdata_input_off(const struct perfdata_input *in)
{
	return in->chunk->file_off + in->pos;
}

/*
 * Reads the sizes of a COMPRESSED2 record at in->pos: of the whole and of its payload. 1; 0: end;
 * -errno.
 */
static int perfdata_compressed2_sizes(struct perfdata *d, size_t *size, size_t *payload)
{
	struct perfdata_input *in = &d->in;
	uint64_t data_size, off = perfdata_input_off(in);
	int r = perfdata_input_fill(d, COMPRESSED2_HEAD_BYTES);

	if (r <= 0)
		return r;
	if (off < in->group_end) {
		if (*size < COMPRESSED2_HEAD_BYTES)
			return parse_fail(&d->end_error, -EBADMSG,
					  "a compressed record is too small", off);
		*payload = *size - COMPRESSED2_HEAD_BYTES;
		return perfdata_input_fill(d, *size);
	}
	memcpy(&data_size, in->chunk->bytes + in->pos + 8, sizeof(data_size));
	if (data_size > COMPRESSED2_GROUP_MAX)
		return parse_fail(&d->end_error, -EBADMSG, "a compressed record has an absurd size",
				  off);
	*payload =
		data_size < COMPRESSED2_PAYLOAD_MAX ? (size_t)data_size : COMPRESSED2_PAYLOAD_MAX;
	if (COMPRESSED2_HEAD_BYTES + data_size > *size) {
		*size = COMPRESSED2_HEAD_BYTES + *payload;
		in->group_end = off + COMPRESSED2_HEAD_BYTES + data_size;
	}
	return perfdata_input_fill(d, *size);
}

/* Copies an unaligned record to an aligned place, so that its words can be read in place. */
static int perfdata_input_align(struct perfdata *d, struct perfdata_raw *raw)
{
	struct perfdata_input *in = &d->in;
	struct perfdata_chunk *side = in->side;
	size_t at = side ? (side->len + 7) & ~(size_t)7 : 0;

	if (!side || at + raw->size > side->cap) {
		int r = perfdata_chunk_get(&d->pool, &in->side);

		if (r) {
			in->side = side;
			return parse_fail(&d->end_error, r, "out of memory", raw->file_off);
		}
		perfdata_chunk_put(&d->pool, side);
		side = in->side;
		at = 0;
	}
	memcpy(side->bytes + at, raw->bytes, raw->size);
	side->len = at + raw->size;
	raw->bytes = side->bytes + at;
	raw->chunk = side;
	return 0;
}

/*
 * Ends reading at the mark of the end. Bytes after it are not records; the recorder was killed
 * before it updated the header.
 */
static int perfdata_input_leave(struct perfdata_input *in)
{
	in->pos = in->chunk->len;
	in->eof = true;
	return 0;
}

/* Reads the next record of the file without decompressing it. */
static int perfdata_input_stored(struct perfdata *d, struct perfdata_raw *raw)
{
	struct perfdata_input *in = &d->in;
	struct perf_event_header h;
	size_t size, payload = 0;
	int r = perfdata_input_fill(d, sizeof(h));

	if (r <= 0)
		return r < 0 ? r : perfdata_input_end(d);
	memcpy(&h, in->chunk->bytes + in->pos, sizeof(h));
	size = h.size;
	if (h.type == PERFDATA_RECORD_COMPRESSED2)
		r = perfdata_compressed2_sizes(d, &size, &payload);
	else if (h.type == PERFDATA_RECORD_FINISHED_ROUND && h.misc == PERFDATA_MISC_LAST_ROUND &&
		 d->stats.unfinished)
		return perfdata_input_leave(in);
	else if (size < sizeof(h) && d->stats.unfinished && !h.type && !h.misc && !size)
		r = 0; /* the file system had stored the length, but not the content */
	else if (size < sizeof(h))
		r = parse_fail(&d->end_error, -EBADMSG, "a record is smaller than its header",
			       perfdata_input_off(in));
	else
		r = perfdata_input_fill(d, size);
	if (r <= 0)
		return r < 0 ? r : perfdata_input_end(d);
	*raw = (struct perfdata_raw){
		.bytes = in->chunk->bytes + in->pos,
		.chunk = in->chunk,
		.file_off = perfdata_input_off(in),
		.type = h.type,
		.misc = h.misc,
		.size = (uint32_t)size,
	};
	in->pos += size;
	if (h.type == PERFDATA_RECORD_COMPRESSED)
		perfdata_unzip_begin(d, raw->bytes + sizeof(h), size - sizeof(h), raw->file_off);
	else if (h.type == PERFDATA_RECORD_COMPRESSED2)
		perfdata_unzip_begin(d, raw->bytes + COMPRESSED2_HEAD_BYTES, payload,
				     raw->file_off);
	return 1;
}

int perfdata_input_next(struct perfdata *d, struct perfdata_raw *raw)
{
	int r;

	for (;;) {
		r = d->in.unzip.chunk || d->in.unzip.more ? perfdata_unzip_next(d, raw) : 0;
		if (!r)
			r = perfdata_input_stored(d, raw);
		if (r <= 0)
			return r;
		if (raw->type != PERFDATA_RECORD_COMPRESSED &&
		    raw->type != PERFDATA_RECORD_COMPRESSED2)
			break;
		/* A compressed record inside another one is invalid. */
		d->stats.damaged += raw->inner;
	}
	if (raw->type < PERFDATA_RECORD_USER && (uintptr_t)raw->bytes % 8) {
		r = perfdata_input_align(d, raw);
		if (r)
			return r;
	}
	return 1;
}

void perfdata_input_free(struct perfdata *d)
{
	perfdata_unzip_free(d);
	perfdata_chunk_put(&d->pool, d->in.chunk);
	perfdata_chunk_put(&d->pool, d->in.side);
}
