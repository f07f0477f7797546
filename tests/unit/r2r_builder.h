/*
 * Builds PE images with ReadyToRun tables in memory for tests of their reader. Addresses are file
 * offsets plus R2R_RVA, as in images for Linux. The test writes the contents of tables, byte for
 * byte if needed.
 */
#ifndef TESTS_UNIT_R2R_BUILDER_H
#define TESTS_UNIT_R2R_BUILDER_H

#include "base/file.h"
#include "tests/unit/metadata_builder.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define R2R_RVA 0x10000u   /* rva of the file's first byte */
#define R2R_HEADERS 0x200u /* bytes before the section */
#define R2R_KINDS_MAX 16

struct r2r_build {
	struct outbuf body; /* of the only section, which begins at file offset R2R_HEADERS */
	uint32_t kinds[R2R_KINDS_MAX], rvas[R2R_KINDS_MAX],
		bytes[R2R_KINDS_MAX]; /* sections of the R2R header */
	uint32_t n;
	uint32_t metadata, metadata_bytes, cli, cli_bytes, exports, exports_bytes;
	uint16_t machine, major; /* values as in the file */
};

static inline struct r2r_build r2r_begin(void)
{
	return (struct r2r_build){.body = outbuf_to(-1), .machine = 0x8664 ^ 0x7b79, .major = 16};
}

/* Offset of the next byte. */
static inline uint32_t r2r_rva(const struct r2r_build *b)
{
	return R2R_RVA + R2R_HEADERS + (uint32_t)b->body.len;
}

static inline uint64_t r2r_file_off(uint32_t rva)
{
	return rva - R2R_RVA;
}

static inline void r2r_put(struct r2r_build *b, const void *data, size_t len)
{
	outbuf_put(&b->body, data, len);
}

static inline void r2r_u32(struct r2r_build *b, uint32_t x)
{
	metadata_u32(&b->body, x);
}

/* A section of the R2R header, whose data are appended here. */
static inline uint32_t r2r_section(struct r2r_build *b, uint32_t kind, const void *data, size_t len)
{
	uint32_t rva = r2r_rva(b);

	if (b->n == R2R_KINDS_MAX)
		abort();
	b->kinds[b->n] = kind;
	b->rvas[b->n] = rva;
	b->bytes[b->n++] = (uint32_t)len;
	r2r_put(b, data, len);
	return rva;
}

#define R2R_SECTION(b, kind, ...) \
	r2r_section(b, kind, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static inline void r2r_metadata(struct r2r_build *b, struct metadata_build *metadata)
{
	size_t len;
	unsigned char *data = metadata_end(metadata, &len);

	b->metadata = r2r_rva(b);
	b->metadata_bytes = (uint32_t)len;
	r2r_put(b, data, len);
	free(data);
}

/* Writes the sections so far as a header, as a composite image has one for each assembly. */
static inline void r2r_core(struct r2r_build *b, uint32_t *ret_rva, uint32_t *ret_bytes)
{
	*ret_rva = r2r_rva(b);
	r2r_u32(b, 0);
	r2r_u32(b, b->n);
	for (uint32_t i = 0; i < b->n; i++) {
		r2r_u32(b, b->kinds[i]);
		r2r_u32(b, b->rvas[i]);
		r2r_u32(b, b->bytes[i]);
	}
	b->n = 0;
	*ret_bytes = r2r_rva(b) - *ret_rva;
}

/* Writes the header with its CLI header, or, if composite, as an export. */
static inline void r2r_header(struct r2r_build *b, int composite)
{
	uint32_t header = r2r_rva(b), core, bytes;

	r2r_put(b, "RTR", 4);
	r2r_u32(b, b->major);
	r2r_core(b, &core, &bytes);
	if (composite) {
		uint32_t array = r2r_rva(b);

		/* names, functions, ordinals, the name */
		r2r_u32(b, array + 12);
		r2r_u32(b, header);
		r2r_u32(b, 0);
		r2r_put(b, "RTR_HEADER", 11);
		b->exports = r2r_rva(b);
		b->exports_bytes = 40;
		for (int i = 0; i < 6; i++)
			r2r_u32(b, i == 5 ? 1 : 0);
		r2r_u32(b, 1);
		r2r_u32(b, array + 4);
		r2r_u32(b, array);
		r2r_u32(b, array + 8);
		return;
	}
	b->cli = r2r_rva(b);
	b->cli_bytes = 72;
	r2r_u32(b, 72);
	r2r_u32(b, 0);
	r2r_u32(b, b->metadata);
	r2r_u32(b, b->metadata_bytes);
	for (int i = 0; i < 12; i++)
		r2r_u32(b, 0);
	r2r_u32(b, header);
	r2r_u32(b, bytes + 8);
}

static inline void r2r_head_u16(unsigned char *head, size_t at, uint32_t x)
{
	head[at] = (unsigned char)x;
	head[at + 1] = (unsigned char)(x >> 8);
}

static inline void r2r_head_u32(unsigned char *head, size_t at, uint32_t x)
{
	r2r_head_u16(head, at, x & 0xffff);
	r2r_head_u16(head, at + 2, x >> 16);
}

/* Returns the whole file, allocated. Consumes the builder. */
static inline unsigned char *r2r_end(struct r2r_build *b, size_t *ret_len)
{
	size_t len = R2R_HEADERS + b->body.len, optional = 0x58, table = optional + 112 + 16 * 8;
	unsigned char *file = calloc(1, len);

	if (!file || b->body.error)
		abort();
	file[0] = 'M';
	file[1] = 'Z';
	file[0x3c] = 0x40;
	file[0x40] = 'P';
	file[0x41] = 'E';
	r2r_head_u16(file, 0x44, b->machine);
	r2r_head_u16(file, 0x46, 1);
	r2r_head_u16(file, 0x54, 112 + 16 * 8);
	r2r_head_u16(file, optional, 0x20b);
	r2r_head_u32(file, optional + 108, 16);
	r2r_head_u32(file, optional + 112, b->exports);
	r2r_head_u32(file, optional + 116, b->exports_bytes);
	r2r_head_u32(file, optional + 112 + 14 * 8, b->cli);
	r2r_head_u32(file, optional + 116 + 14 * 8, b->cli_bytes);
	r2r_head_u32(file, table + 8, (uint32_t)b->body.len);
	r2r_head_u32(file, table + 12, R2R_RVA + R2R_HEADERS);
	r2r_head_u32(file, table + 16, (uint32_t)b->body.len);
	r2r_head_u32(file, table + 20, R2R_HEADERS);
	memcpy(file + R2R_HEADERS, b->body.data, b->body.len);
	outbuf_close(&b->body);
	*ret_len = len;
	return file;
}

/* A file with those bytes; frees data. */
static inline int r2r_file(unsigned char *data, size_t len)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd < 0 || file_write_all(fd, data, len))
		abort();
	free(data);
	return fd;
}

#endif
