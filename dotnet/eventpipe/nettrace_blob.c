#include "dotnet/eventpipe/nettrace_blob.h"

#include "dotnet/eventpipe/nettrace_format.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_HEADER_MIN 4     /* its own size and the flags; later versions may add fields */
#define BLOB_SORTED (1u << 31) /* in metadata_id of an uncompressed header */

int nettrace_blobs_begin(struct nettrace_blobs *b, const void *data, size_t len, unsigned version)
{
	*b = (struct nettrace_blobs){.r = reader_of(data, len), .version = version};
	if (version < 4)
		return 0; /* these blocks have no header */
	uint16_t header = reader_u16(&b->r), flags = reader_u16(&b->r);

	if (header < BLOCK_HEADER_MIN)
		return -EBADMSG;
	reader_seek(&b->r, header);
	b->compressed = flags & NETTRACE_BLOCK_COMPRESSED;
	return b->r.failed ? -EBADMSG : 0;
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

	if (flags & NETTRACE_BLOB_METADATA)
		e->metadata_id = (uint32_t)nettrace_varuint(r, 32);
	if (flags & NETTRACE_BLOB_CAPTURE) {
		e->sequence += (uint32_t)nettrace_varuint(r, 32);
		e->capture_thread = nettrace_varuint(r, 64);
		e->processor = (uint32_t)nettrace_varuint(r, 32);
	}
	if (e->metadata_id || b->version >= 6)
		e->sequence++;
	if (flags & NETTRACE_BLOB_THREAD)
		e->thread = nettrace_varuint(r, 64);
	if (flags & NETTRACE_BLOB_STACK)
		e->stack_id = (uint32_t)nettrace_varuint(r, 32);
	/* Modulo 2^64: an event may be older than the one before it. */
	e->ticks += nettrace_varuint(r, 64);
	if (b->version >= 6) {
		if (flags & NETTRACE_BLOB_ACTIVITY)
			e->labels_id = (uint32_t)nettrace_varuint(r, 32);
	} else {
		if (flags & NETTRACE_BLOB_ACTIVITY)
			blob_guid(r, e->activity);
		if (flags & NETTRACE_BLOB_RELATED)
			blob_guid(r, e->related_activity);
	}
	e->sorted = flags & NETTRACE_BLOB_IS_SORTED;
	if (flags & NETTRACE_BLOB_PAYLOAD)
		e->payload_len = (uint32_t)nettrace_varuint(r, 32);
	e->payload = reader_bytes(r, e->payload_len);
}

/* The fields of version 3: no numbers of events, and the stack behind the payload. */
static void blob_v3(struct nettrace_blob *e, struct reader *r)
{
	e->metadata_id = reader_u32(r);
	e->thread = e->capture_thread = reader_u32(r);
	e->ticks = reader_u64(r);
	blob_guid(r, e->activity);
	blob_guid(r, e->related_activity);
	e->payload_len = reader_u32(r);
	e->payload = reader_bytes(r, e->payload_len);
	e->stack_len = reader_u32(r);
	e->stack = reader_bytes(r, e->stack_len);
}

static void blob_v4(struct nettrace_blob *e, struct reader *r, unsigned version)
{
	e->metadata_id = reader_u32(r);
	e->sorted = e->metadata_id & BLOB_SORTED;
	e->metadata_id &= ~BLOB_SORTED;
	e->sequence = reader_u32(r);
	e->thread = reader_u64(r);
	e->capture_thread = reader_u64(r);
	e->processor = reader_u32(r);
	e->stack_id = reader_u32(r);
	e->ticks = reader_u64(r);
	if (version >= 6) {
		e->labels_id = reader_u32(r);
	} else {
		blob_guid(r, e->activity);
		blob_guid(r, e->related_activity);
	}
	e->payload_len = reader_u32(r);
	e->payload = reader_bytes(r, e->payload_len);
}

static void blob_plain(struct nettrace_blobs *b)
{
	struct reader *r = &b->r;
	uint32_t size = reader_u32(r);
	size_t begin = r->pos;

	if (b->version < 4)
		blob_v3(&b->last, r);
	else
		blob_v4(&b->last, r, b->version);
	/* size counts from after itself to the end of the blob. Blobs are aligned to 4 bytes. */
	if (!r->failed && (size < r->pos - begin || size > reader_left(r) + (r->pos - begin))) {
		r->failed = true;
		r->fail_at = begin;
	}
	if (r->failed)
		return;
	reader_seek(r, begin + size);
	size_t odd = b->version >= 6 ? 0 : r->pos % 4, left = reader_left(r);

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

static size_t kind_text(struct reader *r, struct outbuf *text)
{
	size_t at = text->len, units = 0;
	const void *utf16 = nettrace_utf16(r, NETTRACE_NAME_MAX, &units);

	if (utf16)
		outbuf_utf16(text, utf16, units);
	outbuf_char(text, 0);
	return at;
}

static size_t kind_text_v6(struct reader *r, struct outbuf *text)
{
	size_t at = text->len, len = 0;
	const char *utf8 = nettrace_utf8(r, NETTRACE_NAME_MAX, &len);

	if (utf8)
		outbuf_put(text, utf8, len);
	outbuf_char(text, 0);
	return at;
}

struct nettrace_kind_parts nettrace_kind_begin(void)
{
	return (struct nettrace_kind_parts){.text = outbuf_to(-1)};
}

void nettrace_kind_end(struct nettrace_kind_parts *parts)
{
	outbuf_close(&parts->text);
	event_fields_free(&parts->fields);
}

/*
 * Parses fields. If one has an unknown type, or they are too many, all of the kind are unknown.
 * Returns 0; 1: they are unknown; -ENOMEM.
 */
static int kind_fields(struct nettrace_kind_parts *parts, struct reader *r,
		       enum event_fields_form form)
{
	int error;

	event_fields_free(&parts->fields);
	parts->fields.text = &parts->text;
	error = event_fields_parse(&parts->fields, r, form);
	if (error)
		event_fields_free(&parts->fields);
	return error == -ENOMEM ? error : !!error;
}

/* Reads what follows the fields: tags with a size. A kind without tags ends before them. */
static int kind_tags(struct nettrace_kind_parts *parts, struct reader *r)
{
	int error = 0;

	while (error >= 0 && !r->failed && reader_left(r)) {
		uint32_t bytes = reader_u32(r);
		uint8_t tag = reader_u8(r);
		const void *data = reader_bytes(r, bytes);

		if (!data)
			break;
		struct reader body = reader_of(data, bytes);

		if (tag == NETTRACE_KIND_TAG_OPCODE)
			parts->kind.opcode = reader_u8(&body);
		else if (tag == NETTRACE_KIND_TAG_FIELDS)
			error = kind_fields(parts, &body, EVENT_FIELDS_V2);
	}
	return error < 0 ? error : 0;
}

int nettrace_kind_parse(const void *payload, size_t len, struct nettrace_kind_parts *parts)
{
	struct nettrace_kind *kind = &parts->kind;
	struct reader r = reader_of(payload, len);
	int error = 0;

	kind->metadata_id = reader_u32(&r);
	parts->provider = kind_text(&r, &parts->text);
	kind->event_id = reader_u32(&r);
	parts->name = kind_text(&r, &parts->text);
	kind->keywords = reader_u64(&r);
	kind->version = reader_u32(&r);
	kind->level = reader_u32(&r);
	if (r.failed || !kind->metadata_id)
		return -EBADMSG;
	/* The end of unknown fields is unknown, so tags behind them are not read. */
	if (reader_left(&r))
		error = kind_fields(parts, &r, EVENT_FIELDS_V1);
	if (!error)
		error = kind_tags(parts, &r);
	return error < 0 ? error : parts->text.error;
}

/* Reads the optional parts of a row. An unknown one ends them, because its size is unknown. */
static void kind_options_v6(struct nettrace_kind *kind, struct reader *r)
{
	size_t len;

	while (!r->failed && reader_left(r)) {
		switch (reader_u8(r)) {
		case NETTRACE_KIND_V6_OPCODE:
			kind->opcode = reader_u8(r);
			break;
		case NETTRACE_KIND_V6_KEYWORDS:
			kind->keywords = reader_u64(r);
			break;
		case NETTRACE_KIND_V6_KEY_VALUE:
			nettrace_utf8(r, SIZE_MAX, &len);
			nettrace_utf8(r, SIZE_MAX, &len);
			break;
		case NETTRACE_KIND_V6_TEMPLATE:
		case NETTRACE_KIND_V6_DESCRIPTION:
			nettrace_utf8(r, SIZE_MAX, &len);
			break;
		case NETTRACE_KIND_V6_GUID:
			reader_skip(r, 16);
			break;
		case NETTRACE_KIND_V6_LEVEL:
			kind->level = reader_u8(r);
			break;
		case NETTRACE_KIND_V6_VERSION:
			kind->version = reader_u8(r);
			break;
		default:
			return;
		}
	}
}

int nettrace_kind_parse_v6(const void *row, size_t len, struct nettrace_kind_parts *parts)
{
	struct nettrace_kind *kind = &parts->kind;
	struct reader r = reader_of(row, len);

	kind->metadata_id = (uint32_t)nettrace_varuint(&r, 32);
	parts->provider = kind_text_v6(&r, &parts->text);
	kind->event_id = (uint32_t)nettrace_varuint(&r, 32);
	parts->name = kind_text_v6(&r, &parts->text);
	if (r.failed || !kind->metadata_id)
		return -EBADMSG;
	int error = kind_fields(parts, &r, EVENT_FIELDS_V6);

	if (!error) {
		uint16_t bytes = reader_u16(&r);
		const void *options = reader_bytes(&r, bytes);

		if (!options)
			return -EBADMSG;
		struct reader body = reader_of(options, bytes);

		kind_options_v6(kind, &body);
	}
	return error < 0 ? error : parts->text.error;
}

/* Compares names without slashes, which TraceEvent puts between a task and its step. */
static bool kind_is_name(const char *wanted, const char *name)
{
	for (;; wanted++, name++) {
		wanted += *wanted == '/';
		name += *name == '/';
		if (tolower((unsigned char)*wanted) != tolower((unsigned char)*name))
			return false;
		if (!*wanted)
			return true;
	}
}

bool nettrace_kind_is(const struct nettrace_kind *kind, const char *word)
{
	char *end;
	unsigned long id = strtoul(word, &end, 10);

	if (isdigit((unsigned char)*word) && !*end)
		return id == kind->event_id;
	return kind_is_name(word, kind->name);
}
