/* Reads little-endian values from untrusted bytes, never past their end. */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* Sets the flag. Returns NULL. */
const void *reader_fail(struct reader *r);

/* Returns n bytes in place (not aligned), or NULL. */
static inline const void *reader_bytes(struct reader *r, size_t n)
{
	const void *p = r->data + r->pos;

	if (__builtin_expect(r->failed || n > r->len - r->pos, 0))
		return reader_fail(r);
	r->pos += n;
	return p;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the formats read here are little-endian");

#define READER_INT(name, type)                                 \
	static inline type name(struct reader *r)              \
	{                                                      \
		const void *p = reader_bytes(r, sizeof(type)); \
		type x = 0;                                    \
                                                               \
		if (p)                                         \
			memcpy(&x, p, sizeof(x));              \
		return x;                                      \
	}

READER_INT(reader_u8, uint8_t)
READER_INT(reader_u16, uint16_t)
READER_INT(reader_u32, uint32_t)
READER_INT(reader_u64, uint64_t)

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
