/*
 * Structures: dotnet/runtime, src/coreclr/md (CLiteWeightStgdbRW, CMiniMdRW, StgPool, RecordPool)
 * of .NET 8. Their offsets were determined in running processes.
 * tests/dotnet/promises/agree.sh compares the names with the runtime's own.
 */
#include "dotnet/coreclr/emitted.h"

#include "base/cleanup.h"
#include "base/outbuf.h"
#include "dotnet/coreclr/batch.h"
#include "dotnet/metadata_tables.h"

#include <errno.h>

#define IMPORT_AT 24   /* in PEAssembly: the reader of its metadata */
#define DATABASE_AT 16 /* in that reader */
/* In the database: the head of a #- stream, and a row count for each table. */
#define SCHEMA_AT 8
#define COUNTS_AT (SCHEMA_AT + 24)
#define TABLES 45
#define DEFINITIONS_AT 224 /* 16 bytes for each table; the row size is at 10 */
#define POOLS_AT 1368      /* rows of each table, POOL_BYTES apart */
#define POOL_BYTES 80
#define STRINGS_AT 5328
#define BLOBS_AT 5456
#define GUIDS_AT 5696
#define DATABASE_BYTES (GUIDS_AT + POOL_BYTES)

/*
 * Bytes of a pool's segment: data, next segment, capacity, used bytes. A pool holds its first
 * segment after 8 bytes.
 */
#define SEGMENT_BYTES 24

struct source {
	const struct clr_io *io;
	unsigned char database[DATABASE_BYTES];
	size_t max; /* bytes that may still be read */
};

static int as_not_found(int r)
{
	return r == -EFAULT ? -ENOENT : r;
}

/* Appends the bytes of all segments of a pool, at most limit. */
static int put_pool(struct source *s, size_t pool_at, size_t limit, struct outbuf *out)
{
	unsigned char segment[SEGMENT_BYTES];

	memcpy(segment, s->database + pool_at + 8, sizeof(segment));
	for (int i = 0; i < CLR_EMITTED_SEGMENTS_MAX && limit; i++) {
		uint64_t data = clr_u64(segment, 0), next = clr_u64(segment, 8);
		size_t bytes = clr_u32(segment, 20);
		AUTO_FREE char *copy = NULL;

		bytes = bytes < limit ? bytes : limit;
		if (bytes > s->max)
			return -ENOENT;
		copy = malloc(bytes + 1);
		if (!copy)
			return -ENOMEM;
		int r = bytes ? as_not_found(s->io->read(s->io->ctx, data, copy, bytes)) : 0;

		if (r)
			return r;
		outbuf_put(out, copy, bytes);
		s->max -= bytes;
		limit -= bytes;
		if (!next)
			break;
		r = as_not_found(s->io->read(s->io->ctx, next, segment, sizeof(segment)));
		if (r)
			return r;
	}
	return out->error;
}

static void put_u16(struct outbuf *out, uint16_t x)
{
	outbuf_put(out, &x, sizeof(x));
}

static void put_u32(struct outbuf *out, uint32_t x)
{
	outbuf_put(out, &x, sizeof(x));
}

static uint32_t row_count(const struct source *s, int table)
{
	return clr_u32(s->database, COUNTS_AT + 4 * (size_t)table);
}

static size_t row_size(const struct source *s, int table)
{
	return clr_u16(s->database, DEFINITIONS_AT + 16 * (size_t)table + 10);
}

static int put_tables(struct source *s, struct outbuf *out)
{
	uint64_t valid = 0, sorted = 0;
	int r = 0;

	for (int i = 0; i < TABLES; i++)
		valid |= (uint64_t)(row_count(s, i) > 0) << i;
	outbuf_put(out, s->database + SCHEMA_AT, 8);
	outbuf_put(out, &valid, sizeof(valid));
	outbuf_put(out, &sorted, sizeof(sorted));
	for (int i = 0; i < TABLES; i++)
		if (valid >> i & 1)
			put_u32(out, row_count(s, i));
	for (int i = 0; i < TABLES && !r; i++) {
		size_t bytes = row_count(s, i) * row_size(s, i), before = out->len;

		if (!(valid >> i & 1))
			continue;
		r = put_pool(s, POOLS_AT + POOL_BYTES * (size_t)i, bytes, out);
		if (!r && out->len - before != bytes)
			r = -ENOENT;
	}
	return r;
}

/*
 * Finds the width of columns. All are narrow; once one overflows, all are wide. 0; -ENOENT: the
 * rows have neither width.
 */
static int find_widths(const struct source *s, const struct outbuf *stream, bool *ret_wide)
{
	for (int wide = 0; wide < 2; wide++) {
		struct clr_tables tables;
		bool same = !clr_tables_open(&tables, stream->data, stream->len, NULL, wide, NULL);

		for (int i = 0; i < TABLES && same; i++)
			same = !row_count(s, i) || tables.tables[i].row_bytes == row_size(s, i);
		if (same) {
			*ret_wide = wide;
			return 0;
		}
	}
	return -ENOENT;
}

struct stream {
	const char *name; /* padded to 4 bytes */
	size_t name_bytes;
	struct outbuf text;
};

static void put_file(struct stream *streams, size_t n, struct outbuf *out)
{
	/* The text's own NUL is one of the two bytes of flags. */
	static const char head[] = "BSJB\1\0\1\0\0\0\0\0\4\0\0\0v4\0\0\0";
	size_t at = sizeof(head) + 2;

	for (size_t i = 0; i < n; i++)
		at += 8 + streams[i].name_bytes;
	outbuf_put(out, head, sizeof(head));
	put_u16(out, (uint16_t)n);
	for (size_t i = 0; i < n; i++) {
		put_u32(out, (uint32_t)at);
		put_u32(out, (uint32_t)streams[i].text.len);
		outbuf_put(out, streams[i].name, streams[i].name_bytes);
		at += streams[i].text.len;
	}
	for (size_t i = 0; i < n; i++)
		outbuf_put(out, streams[i].text.data, streams[i].text.len);
}

static int read_database(struct source *s, uint64_t assembly_file)
{
	uint64_t import = 0, database = 0;
	int r = s->io->read(s->io->ctx, assembly_file + IMPORT_AT, &import, sizeof(import));

	if (!r)
		r = import ? s->io->read(s->io->ctx, import + DATABASE_AT, &database,
					 sizeof(database))
			   : -ENOENT;
	if (!r)
		r = database ? s->io->read(s->io->ctx, database, s->database, sizeof(s->database))
			     : -ENOENT;
	/* Check the schema: reserved 0, version 2.0. */
	if (!r && (clr_u32(s->database, SCHEMA_AT) || s->database[SCHEMA_AT + 4] != 2 ||
		   s->database[SCHEMA_AT + 5]))
		r = -ENOENT;
	for (int i = 0; !r && i < TABLES; i++)
		if (row_count(s, i) > 0xffffff)
			r = -ENOENT;
	return as_not_found(r);
}

int clr_emitted_read(const struct clr_io *io, uint64_t assembly_file, size_t max, void **ret_data,
		     size_t *ret_bytes, uint64_t *ret_guids)
{
	struct stream streams[] = {
		{"#-\0\0", 4, outbuf_to(-1)},       {"#Strings\0\0\0\0", 12, outbuf_to(-1)},
		{"#Blob\0\0\0", 8, outbuf_to(-1)},  {"#GUID\0\0\0", 8, outbuf_to(-1)},
		{"#JTD\0\0\0\0", 8, outbuf_to(-1)},
	};
	static const size_t heaps[] = {0, STRINGS_AT, BLOBS_AT, GUIDS_AT};
	enum {
		STREAMS = sizeof(streams) / sizeof(*streams),
		HEAPS = sizeof(heaps) / sizeof(*heaps)
	};
	AUTO_FREE struct source *s = calloc(1, sizeof(*s));
	struct outbuf out = outbuf_to(-1);
	bool wide = false;
	int r = s ? 0 : -ENOMEM;

	if (!r) {
		s->io = io;
		s->max = max;
		r = read_database(s, assembly_file);
	}
	if (!r)
		r = put_tables(s, &streams[0].text);
	for (size_t i = 1; !r && i < HEAPS; i++)
		r = put_pool(s, heaps[i], SIZE_MAX, &streams[i].text);
	if (!r)
		r = find_widths(s, &streams[0].text, &wide);
	if (!r) {
		put_file(streams, wide ? STREAMS : STREAMS - 1, &out);
		r = out.error;
	}
	if (!r) {
		*ret_data = malloc(out.len);
		*ret_bytes = out.len;
		*ret_guids = clr_u64(s->database, GUIDS_AT + 8);
		r = *ret_data ? 0 : -ENOMEM;
	}
	if (!r)
		memcpy(*ret_data, out.data, out.len);
	for (size_t i = 0; i < STREAMS; i++)
		(void)outbuf_close(&streams[i].text);
	(void)outbuf_close(&out);
	return r;
}
