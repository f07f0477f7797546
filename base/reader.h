/* Reads little-endian values out of bytes from outside, never past their end. */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first read that does not fit makes the reader fail: `failed` is set, fail_at says where, that read and all later
 * ones give 0 (or NULL). So a parser reads a whole structure and asks once.
 * data is borrowed and must outlive what is read from it.
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

/* n bytes in place (not aligned), or NULL. */
const void *reader_bytes(struct reader *r, size_t n);

/* A NUL-terminated text in place, moving past the NUL; at most max bytes without it. NULL if no NUL is there. */
const char *reader_cstr(struct reader *r, size_t max, size_t *ret_len);

void reader_skip(struct reader *r, size_t n);

/* Moves to an offset from the start of data; an offset past the end fails. */
void reader_seek(struct reader *r, size_t offset);

static inline size_t reader_left(const struct reader *r)
{
	return r->len - r->pos;
}

#endif
