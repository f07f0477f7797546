/* Reads little-endian values from untrusted bytes, never past their end. */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * After the first read past the end, `failed` is set, fail_at holds the offset, and all reads
 * return 0 or NULL. So a parser can read a whole structure and check once. data is borrowed and
 * must outlive all pointers into it.
 */
struct reader {
	const unsigned char *data;
	size_t len, pos;
	bool failed;
	size_t fail_at;
};

struct reader reader_of(const void *data, size_t len);

uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

/* Returns n bytes in place (not aligned), or NULL. */
const void *reader_bytes(struct reader *r, size_t n);

/*
 * Returns a NUL-terminated text in place and moves past its NUL. The text has at most max bytes
 * without the NUL. Fails with NULL if no NUL follows in time.
 */
const char *reader_cstr(struct reader *r, size_t max, size_t *ret_len);

void reader_skip(struct reader *r, size_t n);

/* Moves to an offset from the start of data; fails if the offset is past the end. */
void reader_seek(struct reader *r, size_t offset);

static inline size_t reader_left(const struct reader *r)
{
	return r->len - r->pos;
}

#endif
