#include "dotnet/r2r_debug_info.h"

#include "dotnet/r2r_native.h"

#include <errno.h>
#include <stdbool.h>

/* Added to stored IL offsets, which keeps the marks of il_points.h small. */
#define IL_BIAS ((uint32_t)-3)

#define PACKED_MAJOR 16 /* first version with packed bounds */
#define ASYNC_MAJOR 17  /* first version with three bits for the kind of point, not two */

/*
 * Decoder of numbers in groups of three bits, most significant first. The fourth bit of each nibble
 * says that another nibble follows.
 */
struct nibbles {
	struct reader *r;
	uint8_t next;
	bool has_next;
};

static uint32_t nibbles_u32(struct nibbles *n)
{
	uint32_t x = 0;

	for (int i = 0; i < 11; i++) {
		uint8_t nibble = n->next;

		if (!n->has_next) {
			uint8_t byte = reader_u8(n->r);

			nibble = byte & 0xf;
			n->next = byte >> 4;
		}
		n->has_next = !n->has_next;
		x = x << 3 | (nibble & 7);
		if (!(nibble & 8) || n->r->failed)
			return x;
	}
	n->r->failed = true;
	return 0;
}

static void plain_bounds(struct reader *r, uint32_t n, struct nibbles nibbles, r2r_bound_fn *fn,
			 void *ctx)
{
	uint32_t native = 0;

	for (uint32_t i = 0; i < n && !r->failed; i++) {
		native += nibbles_u32(&nibbles);
		uint32_t il = nibbles_u32(&nibbles) + IL_BIAS;

		nibbles_u32(&nibbles); /* kind of point */
		if (r->failed || !fn(ctx, native, il))
			return;
	}
}

static void packed_bounds(struct reader *r, uint32_t n, unsigned int kind_bits,
			  struct nibbles nibbles, r2r_bound_fn *fn, void *ctx)
{
	uint32_t native_bits = nibbles_u32(&nibbles) + 1, il_bits = nibbles_u32(&nibbles) + 1;
	uint32_t entry_bits = kind_bits + native_bits + il_bits, native = 0, have = 0;
	uint64_t bits = 0;

	if (native_bits > 32 || il_bits > 32 || entry_bits > 56) {
		r->failed = true;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		while (have < entry_bits && !r->failed) {
			bits |= (uint64_t)reader_u8(r) << have;
			have += 8;
		}
		if (r->failed)
			return;
		uint64_t entry = bits >> kind_bits;

		native += (uint32_t)(entry & ((UINT64_C(1) << native_bits) - 1));
		uint32_t il =
			(uint32_t)(entry >> native_bits & ((UINT64_C(1) << il_bits) - 1)) + IL_BIAS;

		bits >>= entry_bits;
		have -= entry_bits;
		if (!fn(ctx, native, il))
			return;
	}
}

int r2r_debug_info_decode_bounds(const void *bounds, size_t len, enum r2r_bounds kind,
				 r2r_bound_fn *fn, void *ctx)
{
	struct reader b = reader_of(bounds, len);
	struct nibbles nibbles = {.r = &b};
	uint32_t n = nibbles_u32(&nibbles);

	if (n > R2R_DEBUG_INFO_BOUNDS_MAX)
		return -EBADMSG;
	if (kind == R2R_BOUNDS_PLAIN)
		plain_bounds(&b, n, nibbles, fn, ctx);
	else
		packed_bounds(&b, n, kind == R2R_BOUNDS_ASYNC ? 3 : 2, nibbles, fn, ctx);
	return b.failed ? -EBADMSG : 0;
}

int r2r_debug_info_read_head(const void *data, size_t len, size_t *ret_bounds, uint32_t *ret_bytes)
{
	struct reader r = reader_of(data, len);
	struct nibbles head = {.r = &r};
	uint32_t bytes = nibbles_u32(&head);

	nibbles_u32(&head); /* bytes of variable information */
	if (r.failed)
		return -EBADMSG;
	*ret_bounds = r.pos;
	*ret_bytes = bytes;
	return 0;
}

/*
 * Moves r to the information of a function. Equal ones are shared: an element may hold the distance
 * back to the shared bytes.
 */
static int find_function(const void *data, size_t len, uint32_t function, struct reader *r)
{
	struct r2r_array array;
	int error = r2r_array_open(data, len, &array);

	if (!error)
		error = r2r_array_get(&array, function, r);
	if (error)
		return error;
	size_t at = r->pos;
	uint32_t back = r2r_native_u32(r);

	if (r->failed || back > at)
		return -EBADMSG;
	if (back)
		reader_seek(r, at - back);
	return 0;
}

static bool add_point(void *ctx, uint32_t native, uint32_t il)
{
	return il_points_add(ctx, native, il);
}

/* An il_points_read_fn. */
static int read_method(void *ctx, uint32_t function, struct il_points *points)
{
	const struct r2r_debug_info *d = ctx;
	struct reader r;
	int error = find_function(d->data, d->len, function, &r);

	if (error)
		return error;
	const unsigned char *head = r.data + r.pos;
	uint32_t bounds_bytes;
	size_t bounds, left = reader_left(&r);

	error = r2r_debug_info_read_head(head, left, &bounds, &bounds_bytes);
	if (error || bounds_bytes > left - bounds)
		return -EBADMSG;
	if (!bounds_bytes)
		return -ENOENT;
	return r2r_debug_info_decode_bounds(head + bounds, bounds_bytes,
					    d->major < PACKED_MAJOR  ? R2R_BOUNDS_PLAIN
					    : d->major < ASYNC_MAJOR ? R2R_BOUNDS_PACKED
								     : R2R_BOUNDS_ASYNC,
					    add_point, points);
}

int r2r_debug_info_find_il(struct r2r_debug_info *d, uint32_t function, uint32_t native,
			   uint32_t *ret_il)
{
	return il_points_find(&d->points, function, native, read_method, d, ret_il);
}

void r2r_debug_info_free(struct r2r_debug_info *d)
{
	il_points_free(&d->points);
}
