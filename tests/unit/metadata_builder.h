/* Builds ECMA-335 metadata in memory for tests of its reader. The test specifies the layout of
 * rows; nothing computes it. */
#ifndef TESTS_UNIT_METADATA_BUILDER_H
#define TESTS_UNIT_METADATA_BUILDER_H

#include "base/outbuf.h"
#include "dotnet/metadata_tables.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct metadata_build {
	struct outbuf strings, blobs, guids, pdb;
	struct outbuf rows[CLR_TABLES];
	uint32_t nrows[CLR_TABLES];
	uint64_t sorted;
	uint8_t heaps;           /* of the header: heaps with wide indices */
	const char *tables_name; /* name of the table stream; NULL: #~ */
};

static inline struct metadata_build metadata_begin(void)
{
	struct metadata_build b = {.strings = outbuf_to(-1),
				   .blobs = outbuf_to(-1),
				   .guids = outbuf_to(-1),
				   .pdb = outbuf_to(-1)};

	for (size_t i = 0; i < CLR_TABLES; i++)
		b.rows[i] = outbuf_to(-1);
	b.sorted = UINT64_MAX;
	outbuf_char(&b.strings, 0);
	outbuf_char(&b.blobs, 0);
	return b;
}

static inline uint32_t metadata_string(struct metadata_build *b, const char *text)
{
	uint32_t at = (uint32_t)b->strings.len;

	outbuf_put(&b->strings, text, strlen(text) + 1);
	return at;
}

static inline uint32_t metadata_blob(struct metadata_build *b, const void *bytes, size_t len)
{
	uint32_t at = (uint32_t)b->blobs.len;

	if (len >= 0x80)
		outbuf_char(&b->blobs, (char)(0x80 | len >> 8));
	outbuf_char(&b->blobs, (char)len);
	outbuf_put(&b->blobs, bytes, len);
	return at;
}

#define BLOB_OF(b, ...) \
	metadata_blob(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Appends a row; the digits give the widths of its columns ("4222"). Returns its number. */
static inline uint32_t metadata_row(struct metadata_build *b, enum clr_table table,
				    const char *widths, ...)
{
	va_list args;

	va_start(args, widths);
	for (; *widths; widths++) {
		uint32_t x = va_arg(args, uint32_t);

		outbuf_put(&b->rows[table], &x, (size_t)(*widths - '0'));
	}
	va_end(args);
	return ++b->nrows[table];
}

static inline void metadata_u32(struct outbuf *o, uint32_t x)
{
	outbuf_put(o, &x, sizeof(x));
}

static inline void metadata_tables(struct metadata_build *b, struct outbuf *tables)
{
	uint64_t valid = 0;

	metadata_u32(tables, 0);
	outbuf_put(tables, (const char[]){2, 0, (char)b->heaps, 1}, 4);
	for (size_t i = 0; i < CLR_TABLES; i++)
		valid |= b->nrows[i] ? UINT64_C(1) << i : 0;
	outbuf_put(tables, &valid, sizeof(valid));
	outbuf_put(tables, &b->sorted, sizeof(b->sorted));
	for (size_t i = 0; i < CLR_TABLES; i++) {
		if (b->nrows[i])
			metadata_u32(tables, b->nrows[i]);
	}
	if (b->heaps & 0x40)
		metadata_u32(tables, 0x12345678);
	for (size_t i = 0; i < CLR_TABLES; i++) {
		outbuf_put(tables, b->rows[i].data ? b->rows[i].data : "", b->rows[i].len);
		outbuf_close(&b->rows[i]);
	}
}

/* Returns all metadata in memory of exactly its size, so that reads past it are visible. Consumes
 * the builder. */
static inline unsigned char *metadata_end(struct metadata_build *b, size_t *ret_len)
{
	struct outbuf tables = outbuf_to(-1), out = outbuf_to(-1);
	const char *names[] = {b->tables_name ? b->tables_name : "#~", "#Strings", "#Blob", "#GUID",
			       "#Pdb"};
	struct outbuf *streams[] = {&tables, &b->strings, &b->blobs, &b->guids, &b->pdb};
	uint32_t nstreams = b->pdb.len ? 5 : 4, at = 16 + 8 + 4;

	metadata_tables(b, &tables);
	for (uint32_t i = 0; i < nstreams; i++)
		at += 8 + (uint32_t)(strlen(names[i]) / 4 + 1) * 4;
	outbuf_put(&out, "BSJB\1\0\1\0\0\0\0\0\10\0\0\0v4.0\0\0\0\0\0\0", 26);
	outbuf_put(&out, (const char[]){(char)nstreams, 0}, 2);
	for (uint32_t i = 0; i < nstreams; i++) {
		metadata_u32(&out, at);
		metadata_u32(&out, (uint32_t)streams[i]->len);
		outbuf_put(&out, names[i], strlen(names[i]));
		outbuf_put(&out, "\0\0\0", 4 - strlen(names[i]) % 4);
		at += (uint32_t)streams[i]->len;
	}
	unsigned char *bytes;

	for (uint32_t i = 0; i < nstreams; i++)
		outbuf_put(&out, streams[i]->data ? streams[i]->data : "", streams[i]->len);
	for (size_t i = 0; i < 5; i++)
		outbuf_close(streams[i]);
	bytes = malloc(out.len);
	if (!bytes || out.error)
		abort();
	memcpy(bytes, out.data, out.len);
	*ret_len = out.len;
	outbuf_close(&out);
	return bytes;
}

#endif
