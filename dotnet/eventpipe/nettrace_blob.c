#include "dotnet/eventpipe/nettrace_blob.h"

#include "dotnet/eventpipe/ipc.h"

#include <errno.h>
#include <string.h>

#define BLOCK_COMPRESSED 1     /* flag in a block's header */
#define BLOCK_HEADER_MIN 4     /* its own size and the flags; later versions may add fields */
#define BLOB_SORTED (1u << 31) /* in metadata_id of an uncompressed header */

/* Flags of a compressed header: the fields that follow. */
enum {
	BLOB_METADATA = 0x01,
	BLOB_CAPTURE = 0x02,
	BLOB_THREAD = 0x04,
	BLOB_STACK = 0x08,
	BLOB_ACTIVITY = 0x10,
	BLOB_RELATED = 0x20,
	BLOB_IS_SORTED = 0x40,
	BLOB_PAYLOAD = 0x80,
};

int nettrace_blobs_begin(struct nettrace_blobs *b, const void *data, size_t len)
{
	*b = (struct nettrace_blobs){.r = reader_of(data, len)};
	uint16_t header = reader_u16(&b->r), flags = reader_u16(&b->r);

	if (header < BLOCK_HEADER_MIN)
		return -EBADMSG;
	reader_seek(&b->r, header);
	b->compressed = flags & BLOCK_COMPRESSED;
	return b->r.failed ? -EBADMSG : 0;
}

/* Reads 7 bits of each byte, lowest first. A number with more bits is damage. */
static uint64_t blob_varuint(struct reader *r, unsigned bits)
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

static void blob_guid(struct reader *r, unsigned char *guid)
{
	const void *bytes = reader_bytes(r, 16);

	if (bytes)
		memcpy(guid, bytes, 16);
}

static void blob_compressed(struct nettrace_blobs *b)
{
	struct nettrace_blob *e = &b->last;
	struct reader *r = &b->r;
	uint8_t flags = reader_u8(r);

	if (flags & BLOB_METADATA)
		e->metadata_id = (uint32_t)blob_varuint(r, 32);
	if (flags & BLOB_CAPTURE) {
		e->sequence += (uint32_t)blob_varuint(r, 32);
		e->capture_thread = blob_varuint(r, 64);
		e->processor = (uint32_t)blob_varuint(r, 32);
	}
	if (e->metadata_id)
		e->sequence++;
	if (flags & BLOB_THREAD)
		e->thread = blob_varuint(r, 64);
	if (flags & BLOB_STACK)
		e->stack_id = (uint32_t)blob_varuint(r, 32);
	/* Modulo 2^64: an event may be older than the one before it. */
	e->ticks += blob_varuint(r, 64);
	if (flags & BLOB_ACTIVITY)
		blob_guid(r, e->activity);
	if (flags & BLOB_RELATED)
		blob_guid(r, e->related_activity);
	e->sorted = flags & BLOB_IS_SORTED;
	if (flags & BLOB_PAYLOAD)
		e->payload_len = (uint32_t)blob_varuint(r, 32);
	e->payload = reader_bytes(r, e->payload_len);
}

static void blob_plain(struct nettrace_blobs *b)
{
	struct nettrace_blob *e = &b->last;
	struct reader *r = &b->r;
	uint32_t size = reader_u32(r);
	size_t begin = r->pos;

	e->metadata_id = reader_u32(r);
	e->sorted = e->metadata_id & BLOB_SORTED;
	e->metadata_id &= ~BLOB_SORTED;
	e->sequence = reader_u32(r);
	e->thread = reader_u64(r);
	e->capture_thread = reader_u64(r);
	e->processor = reader_u32(r);
	e->stack_id = reader_u32(r);
	e->ticks = reader_u64(r);
	blob_guid(r, e->activity);
	blob_guid(r, e->related_activity);
	e->payload_len = reader_u32(r);
	e->payload = reader_bytes(r, e->payload_len);
	/* size counts from after itself to the end of the payload. Blobs are aligned to 4 bytes. */
	if (!r->failed && (size < r->pos - begin || size > reader_left(r) + (r->pos - begin))) {
		r->failed = true;
		r->fail_at = begin;
	}
	if (r->failed)
		return;
	reader_seek(r, begin + size);
	size_t odd = r->pos % 4, left = reader_left(r);

	reader_skip(r, odd ? (4 - odd < left ? 4 - odd : left) : 0);
}

int nettrace_blobs_next(struct nettrace_blobs *b, struct nettrace_blob *ret_blob)
{
	if (!b->r.failed && !reader_left(&b->r))
		return 0;
	if (b->compressed)
		blob_compressed(b);
	else
		blob_plain(b);
	if (b->r.failed)
		return -EBADMSG;
	*ret_blob = b->last;
	return 1;
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

static size_t kind_text(struct reader *r, struct outbuf *text)
{
	size_t at = text->len, units = 0;
	const void *utf16 = nettrace_utf16(r, NETTRACE_NAME_MAX, &units);

	if (utf16)
		outbuf_utf16(text, utf16, units);
	outbuf_char(text, 0);
	return at;
}

int nettrace_kind_parse(const void *payload, size_t len, struct outbuf *text,
			struct nettrace_kind *ret_kind, size_t *ret_provider, size_t *ret_name)
{
	struct reader r = reader_of(payload, len);
	struct nettrace_kind kind = {0};
	size_t provider, name;

	kind.metadata_id = reader_u32(&r);
	provider = kind_text(&r, text);
	kind.event_id = reader_u32(&r);
	name = kind_text(&r, text);
	kind.keywords = reader_u64(&r);
	kind.version = reader_u32(&r);
	kind.level = reader_u32(&r);
	if (r.failed || !kind.metadata_id)
		return -EBADMSG;
	if (text->error)
		return text->error;
	*ret_kind = kind;
	*ret_provider = provider;
	*ret_name = name;
	return 0;
}
