#include "dotnet/eventpipe/nettrace_value.h"

#include "dotnet/eventpipe/ipc.h"

uint64_t nettrace_varuint(struct reader *r, unsigned bits)
{
	uint64_t x = 0;

	for (unsigned shift = 0; shift < bits && !r->failed; shift += 7) {
		uint8_t byte = reader_u8(r);

		x |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return x;
	}
	if (!r->failed) {
		r->failed = true;
		r->fail_at = r->pos;
	}
	return 0;
}

const void *nettrace_utf16(struct reader *r, size_t max_units, size_t *ret_units)
{
	const unsigned char *at = r->data + r->pos;
	size_t limit = reader_left(r) / 2, units = 0;

	if (limit > max_units + 1)
		limit = max_units + 1;
	while (units < limit && (at[2 * units] || at[2 * units + 1]))
		units++;
	if (r->failed || units == limit) {
		if (!r->failed)
			r->fail_at = r->pos;
		r->failed = true;
		return NULL;
	}
	reader_skip(r, 2 * units + 2);
	*ret_units = units;
	return at;
}

const char *nettrace_utf8(struct reader *r, size_t max, size_t *ret_len)
{
	size_t at = r->pos;
	uint64_t len = nettrace_varuint(r, 32);
	const char *text = len <= max ? reader_bytes(r, len) : NULL;

	if (!text && !r->failed) {
		r->failed = true;
		r->fail_at = at;
	}
	*ret_len = text ? len : 0;
	return text;
}

void nettrace_put_varuint(struct outbuf *out, uint64_t x)
{
	for (; x >= 0x80; x >>= 7)
		ipc_put_u8(out, (uint8_t)(x | 0x80));
	ipc_put_u8(out, (uint8_t)x);
}

void nettrace_put_utf8(struct outbuf *out, const char *text)
{
	size_t len = strlen(text);

	nettrace_put_varuint(out, len);
	outbuf_put(out, text, len);
}

void nettrace_put_utf16(struct outbuf *out, const char *text, size_t len)
{
	outbuf_utf8_units(out, text, len);
	ipc_put_u16(out, 0);
}
