#include "dotnet/r2r_native.h"

#include <errno.h>

#define ARRAY_BLOCK 16

/*
 * Reads a number. Its lowest bits give its size: 0 one byte, 01 two, 011 three, 0111 four; 01111:
 * four more bytes follow. Returns the number of its bits, which are the upper bits of *ret_bits.
 */
static unsigned int read_number(struct reader *r, uint32_t *ret_bits)
{
	uint32_t bits = reader_u8(r);
	unsigned int more = 0;

	while (more < 4 && (bits >> more & 1))
		more++;
	if (more == 4) {
		if (bits & 16)
			r->failed = true;
		*ret_bits = reader_u32(r);
		return 32;
	}
	for (unsigned int i = 1; i <= more; i++)
		bits |= (uint32_t)reader_u8(r) << (8 * i);
	unsigned int width = 7 * (more + 1);

	*ret_bits = bits >> (more + 1) << (32 - width);
	return width;
}

uint32_t r2r_native_u32(struct reader *r)
{
	uint32_t bits;
	unsigned int width = read_number(r, &bits);

	return r->failed ? 0 : bits >> (32 - width);
}

int32_t r2r_native_i32(struct reader *r)
{
	uint32_t bits;
	unsigned int width = read_number(r, &bits);

	return r->failed ? 0 : (int32_t)bits >> (32 - width);
}

uint32_t r2r_native_entry_point(struct reader *r)
{
	uint32_t value = r2r_native_u32(r);

	return value & 1 ? value >> 2 : value >> 1;
}

static uint32_t read_width(struct reader *r, uint8_t width)
{
	return width == 1 ? reader_u8(r) : width == 2 ? reader_u16(r) : reader_u32(r);
}

int r2r_array_open(const void *data, size_t len, struct r2r_array *ret_array)
{
	struct reader r = reader_of(data, len);
	uint32_t header = r2r_native_u32(&r);

	if (r.failed || (header & 3) > 2)
		return -EBADMSG;
	struct r2r_array a = {.data = data,
			      .len = len,
			      .base = r.pos,
			      .n = header >> 2,
			      .width = (uint8_t)(1u << (header & 3))};
	size_t blocks = ((size_t)a.n + ARRAY_BLOCK - 1) / ARRAY_BLOCK;

	if (blocks > (len - a.base) / a.width)
		return -EBADMSG;
	*ret_array = a;
	return 0;
}

int r2r_array_get(const struct r2r_array *a, uint32_t index, struct reader *ret_element)
{
	struct reader r = reader_of(a->data, a->len);

	if (index >= a->n)
		return -ENOENT;
	reader_seek(&r, a->base + (size_t)(index / ARRAY_BLOCK) * a->width);
	reader_seek(&r, a->base + (size_t)read_width(&r, a->width));
	/*
	 * Descend a tree of four levels. Each node has a flag for its left half, which follows, and
	 * the offset of its right half.
	 */
	for (uint32_t bit = ARRAY_BLOCK / 2; bit && !r.failed; bit >>= 1) {
		size_t node = r.pos;
		uint32_t value = r2r_native_u32(&r);

		if (index & bit && value & 2) {
			reader_seek(&r, node + (value >> 2));
			continue;
		}
		if (!(index & bit) && value & 1)
			continue;
		if (value & 3 || value >> 2 != (index & (ARRAY_BLOCK - 1)))
			return r.failed ? -EBADMSG : -ENOENT;
		break; /* the only element below this node */
	}
	if (r.failed)
		return -EBADMSG;
	*ret_element = r;
	return 0;
}

int r2r_hashtable_open(const void *data, size_t len, struct r2r_hashtable *ret_table)
{
	struct reader r = reader_of(data, len);
	uint8_t header = reader_u8(&r);

	if (r.failed || header >> 2 > 31 || (header & 3) > 2)
		return -EBADMSG;
	struct r2r_hashtable t = {.data = data,
				  .len = len,
				  .base = r.pos,
				  .buckets = 1u << (header >> 2),
				  .width = (uint8_t)(1u << (header & 3))};

	/* One more offset than buckets gives the end of the last bucket. */
	if ((size_t)t.buckets + 1 > (len - t.base) / t.width)
		return -EBADMSG;
	*ret_table = t;
	return 0;
}

/*
 * Moves to the next bucket. Buckets must not overlap, so all together are no longer than the table.
 */
static int next_bucket(struct r2r_hashtable *t)
{
	struct reader r = reader_of(t->data, t->len);

	reader_seek(&r, t->base + (size_t)t->bucket * t->width);
	size_t at = t->base + (size_t)read_width(&r, t->width),
	       end = t->base + (size_t)read_width(&r, t->width);

	if (r.failed || at < t->end || end < at || end > t->len)
		return -EBADMSG;
	t->at = at;
	t->end = end;
	t->bucket++;
	return 0;
}

int r2r_hashtable_next(struct r2r_hashtable *t, struct reader *ret_entry)
{
	struct reader r = reader_of(t->data, t->len);

	while (t->at >= t->end) {
		if (t->bucket == t->buckets)
			return -ENOENT;
		int error = next_bucket(t);

		if (error)
			return error;
	}
	reader_seek(&r, t->at);
	reader_skip(&r, 1); /* the low byte of the hash */
	int64_t from = (int64_t)r.pos;
	int64_t to = from + r2r_native_i32(&r);

	t->at = r.pos;
	if (r.failed || to < 0)
		return -EBADMSG;
	reader_seek(&r, (size_t)to);
	if (r.failed)
		return -EBADMSG;
	*ret_entry = r;
	return 0;
}
