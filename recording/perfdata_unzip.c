/* Unpacks compressed records. */
#include "recording/perfdata_impl.h"

#include <errno.h>
#include <string.h>
#include <zstd_errors.h>

/* A broken stream can only continue where a new one begins. */
static bool perfdata_unzip_start(struct perfdata_unzip *z, const void *data, size_t len)
{
	uint32_t magic = 0;

	if (z->stream && !z->broken)
		return true;
	if (len >= sizeof(magic))
		memcpy(&magic, data, sizeof(magic));
	if (z->stream && magic != ZSTD_MAGICNUMBER)
		return false;
	if (!z->stream)
		z->stream = ZSTD_createDStream();
	z->broken = !z->stream || ZSTD_isError(ZSTD_initDStream(z->stream)) ||
		    (z->window_log && ZSTD_isError(ZSTD_DCtx_setParameter(
					      z->stream, ZSTD_d_windowLogMax, z->window_log)));
	return !z->broken;
}

void perfdata_unzip_begin(struct perfdata *d, const void *data, size_t len, uint64_t file_off)
{
	struct perfdata_unzip *z = &d->in.unzip;

	d->info.compressed = true;
	if (!perfdata_unzip_start(z, data, len)) {
		d->stats.damaged++;
		return;
	}
	z->in = (ZSTD_inBuffer){.src = data, .size = len};
	z->block_off = file_off;
	z->block_bytes = 0;
	z->packed += len;
	z->more = true;
}

/* The rest of the stream refers to lost data. */
static void perfdata_unzip_broke(struct perfdata *d)
{
	struct perfdata_unzip *z = &d->in.unzip;

	d->stats.damaged++;
	z->broken = true;
	z->more = false;
	if (z->chunk)
		z->pos = z->chunk->len;
}

/* Makes room for output. A record that began in the old chunk moves to the new one. */
static int perfdata_unzip_turn(struct perfdata *d)
{
	struct perfdata_unzip *z = &d->in.unzip;
	struct perfdata_chunk *old = z->chunk, *fresh;
	int r = perfdata_chunk_get(&d->pool, &fresh);

	if (r)
		return parse_fail(&d->end_error, r, "out of memory", z->block_off);
	if (old) {
		fresh->len = old->len - z->pos;
		memcpy(fresh->bytes, old->bytes + z->pos, fresh->len);
	}
	z->chunk = fresh;
	z->pos = 0;
	perfdata_chunk_put(&d->pool, old);
	return 0;
}

static int perfdata_unzip_fill(struct perfdata *d)
{
	struct perfdata_unzip *z = &d->in.unzip;

	if (!z->chunk || z->chunk->len == z->chunk->cap) {
		int r = perfdata_unzip_turn(d);

		if (r)
			return r;
	}
	ZSTD_outBuffer out = {.dst = z->chunk->bytes + z->chunk->len,
			      .size = z->chunk->cap - z->chunk->len};
	size_t before = z->in.pos;
	size_t code = ZSTD_decompressStream(z->stream, &out, &z->in);
	bool stuck = z->in.pos == before && !out.pos && z->in.pos < z->in.size;

	z->too_large |= ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge;
	z->block_bytes += out.pos;
	z->unpacked += out.pos;
	if (ZSTD_isError(code) || stuck || z->block_bytes > PERFDATA_BLOCK_BYTES_MAX ||
	    z->unpacked > PERFDATA_BLOCK_BYTES_MAX + PERFDATA_UNZIP_RATIO_MAX * z->packed) {
		perfdata_unzip_broke(d);
		return 0;
	}
	z->chunk->len += out.pos;
	z->more = z->in.pos < z->in.size || out.pos == out.size;
	return 0;
}

int perfdata_unzip_next(struct perfdata *d, struct perfdata_raw *raw)
{
	struct perfdata_unzip *z = &d->in.unzip;

	for (;;) {
		size_t left = z->chunk ? z->chunk->len - z->pos : 0;
		struct perf_event_header h;

		if (left >= sizeof(h)) {
			memcpy(&h, z->chunk->bytes + z->pos, sizeof(h));
			if (h.size < sizeof(h))
				return parse_fail(
					&d->end_error, -EBADMSG,
					"a compressed record holds one smaller than its header",
					z->block_off);
			if (h.size <= left) {
				*raw = (struct perfdata_raw){
					.bytes = z->chunk->bytes + z->pos,
					.chunk = z->chunk,
					.file_off = z->block_off,
					.type = h.type,
					.misc = h.misc,
					.size = h.size,
					.inner = true,
				};
				z->pos += h.size;
				return 1;
			}
		}
		if (!z->more)
			return 0;
		int r = perfdata_unzip_fill(d);

		if (r)
			return r;
	}
}

void perfdata_unzip_free(struct perfdata *d)
{
	ZSTD_freeDStream(d->in.unzip.stream);
	perfdata_chunk_put(&d->pool, d->in.unzip.chunk);
	d->in.unzip = (struct perfdata_unzip){0};
}
