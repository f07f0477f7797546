#include "base/reader.h"

#include <string.h>

struct reader reader_of(const void *data, size_t len)
{
	return (struct reader){.data = data, .len = len};
}

const void *reader_fail(struct reader *r)
{
	if (!r->failed)
		r->fail_at = r->pos;
	r->failed = true;
	return NULL;
}

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
