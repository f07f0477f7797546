/* Builds perf.data in memory for tests of its reader. All functions are static, so each test
 * program has its own. */
#ifndef TESTS_UNIT_PERFDATA_BUILDER_H
#define TESTS_UNIT_PERFDATA_BUILDER_H

#include "recording/perfdata_format.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct build_event {
	struct perf_event_attr attr;
	uint64_t ids[4];
	size_t nids;
};

struct build {
	unsigned char *bytes;
	size_t len, cap;
	size_t record; /* start of the open record */
	size_t data;   /* start of the data section */
	bool pipe;
};

static inline void build_put(struct build *b, const void *data, size_t len)
{
	if (b->cap - b->len < len) {
		b->cap = (b->cap + len) * 2;
		b->bytes = realloc(b->bytes, b->cap);
		if (!b->bytes)
			abort();
	}
	if (len)
		memcpy(b->bytes + b->len, data, len);
	b->len += len;
}

static inline void build_u64(struct build *b, uint64_t x)
{
	build_put(b, &x, sizeof(x));
}

static inline void build_u32(struct build *b, uint32_t x)
{
	build_put(b, &x, sizeof(x));
}

/* Text with its NUL, padded with NULs to a multiple of 8. */
static inline void build_text(struct build *b, const char *s)
{
	static const char zeros[8];
	size_t len = strlen(s) + 1;

	build_put(b, s, len);
	build_put(b, zeros, (8 - len % 8) % 8);
}

static inline void build_record(struct build *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};

	b->record = b->len;
	build_put(b, &h, sizeof(h));
}

static inline void build_record_end(struct build *b)
{
	uint16_t size = (uint16_t)(b->len - b->record);

	memcpy(b->bytes + b->record + 6, &size, sizeof(size));
}

static inline void build_round(struct build *b)
{
	build_record(b, PERFDATA_RECORD_FINISHED_ROUND, 0);
	build_record_end(b);
}

/* File header, attrs and ids. */
static inline void build_file(struct build *b, const struct build_event *events, size_t n)
{
	struct perfdata_file_header h = {.magic = PERFDATA_MAGIC, .size = sizeof(h)};
	uint64_t ids_off = sizeof(h);

	h.attr_size = sizeof(struct perf_event_attr) + sizeof(struct perfdata_section);
	h.attrs.offset = sizeof(h);
	h.attrs.size = n * h.attr_size;
	ids_off += h.attrs.size;
	h.data.offset = ids_off;
	for (size_t i = 0; i < n; i++)
		h.data.offset += events[i].nids * 8;
	build_put(b, &h, sizeof(h));
	for (size_t i = 0; i < n; i++) {
		struct perf_event_attr attr = events[i].attr;

		if (!attr.size)
			attr.size = sizeof(attr);
		build_put(b, &attr, sizeof(attr));
		build_u64(b, ids_off);
		build_u64(b, events[i].nids * 8);
		ids_off += events[i].nids * 8;
	}
	for (size_t i = 0; i < n; i++)
		build_put(b, events[i].ids, events[i].nids * 8);
	b->data = b->len;
}

/* Pipe header and HEADER_ATTR records. */
static inline void build_pipe(struct build *b, const struct build_event *events, size_t n)
{
	struct perfdata_pipe_header h = {PERFDATA_MAGIC, sizeof(h)};

	b->pipe = true;
	build_put(b, &h, sizeof(h));
	for (size_t i = 0; i < n; i++) {
		struct perf_event_attr attr = events[i].attr;

		if (!attr.size)
			attr.size = sizeof(attr);
		build_record(b, PERFDATA_RECORD_HEADER_ATTR, 0);
		build_put(b, &attr, sizeof(attr));
		build_put(b, events[i].ids, events[i].nids * 8);
		build_record_end(b);
	}
	b->data = b->len;
}

/* Sets the header's data size to end here. */
static inline void build_data_end(struct build *b)
{
	uint64_t size = b->len - b->data;

	memcpy(b->bytes + offsetof(struct perfdata_file_header, data.size), &size, sizeof(size));
}

/* Ends the data and writes features. contents[i] belongs to features[i], in ascending order. */
static inline void build_features(struct build *b, const unsigned int *features,
				  const struct build *contents, size_t n)
{
	uint64_t *bits =
		(uint64_t *)(void *)(b->bytes + offsetof(struct perfdata_file_header, features));
	uint64_t off;

	build_data_end(b);
	off = b->len + n * sizeof(struct perfdata_section);
	for (size_t i = 0; i < n; i++) {
		uint64_t word;

		memcpy(&word, bits + features[i] / 64, sizeof(word));
		word |= 1ULL << features[i] % 64;
		memcpy(bits + features[i] / 64, &word, sizeof(word));
	}
	for (size_t i = 0; i < n; i++) {
		build_u64(b, off);
		build_u64(b, contents[i].len);
		off += contents[i].len;
	}
	for (size_t i = 0; i < n; i++)
		build_put(b, contents[i].bytes, contents[i].len);
}

/* perf_header_string */
static inline void build_string(struct build *b, const char *s)
{
	uint32_t len = (uint32_t)(strlen(s) + 1 + 7) / 8 * 8;

	build_u32(b, len);
	build_put(b, s, strlen(s));
	for (uint32_t i = (uint32_t)strlen(s); i < len; i++)
		build_put(b, "", 1);
}

/* A file with these bytes. */
static inline int build_fd_of(const void *bytes, size_t len)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	if (fd < 0 || (len && write(fd, bytes, len) != (ssize_t)len))
		abort();
	return fd;
}

static inline int build_fd(const struct build *b)
{
	return build_fd_of(b->bytes, b->len);
}

static inline void build_free(struct build *b)
{
	free(b->bytes);
	*b = (struct build){0};
}

#endif
