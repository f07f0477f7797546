#include "base/reader.h"

#include <string.h>

struct reader reader_of(const void *data, size_t len)
{
	return (struct reader){.data = data, .len = len};
}

static void reader_fail(struct reader *r)
{
	if (!r->failed)
		r->fail_at = r->pos;
	r->failed = true;
}

const void *reader_bytes(struct reader *r, size_t n)
{
	if (r->failed || n > r->len - r->pos) {
		reader_fail(r);
		return NULL;
	}
	const void *p = r->data + r->pos;

	r->pos += n;
	return p;
}

#define READER_INT(name, type)                                 \
	type name(struct reader *r)                            \
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

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the formats read here are little-endian");

const char *reader_cstr(struct reader *r, size_t max, size_t *ret_len)
{
	size_t left = reader_left(r), room = left <= max ? left : max + 1;
	const unsigned char *p = r->data + r->pos;
	const unsigned char *end = r->failed || !room ? NULL : memchr(p, 0, room);

	if (!end) {
		reader_fail(r);
		return NULL;
	}
	r->pos += (size_t)(end - p) + 1;
	if (ret_len)
		*ret_len = (size_t)(end - p);
	return (const char *)p;
}

void reader_skip(struct reader *r, size_t n)
{
	(void)reader_bytes(r, n);
}

void reader_seek(struct reader *r, size_t offset)
{
	if (r->failed || offset > r->len)
		reader_fail(r);
	else
		r->pos = offset;
}
