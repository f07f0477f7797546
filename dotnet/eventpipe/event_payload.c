#include "dotnet/eventpipe/event_payload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAYLOAD_COUNTS 64            /* fields that can have the number of elements of an array */
#define PAYLOAD_WORK_MIN 4096        /* elements */
#define FILETIME_S 10000000          /* units in a second */
#define FILETIME_1970 11644473600ULL /* seconds from 1601 to 1970 */
#define FILETIME_YEARS_MAX 315537897600ULL /* seconds of 9,999 years */

struct payload {
	const struct event_field *fields;
	struct reader *r; /* over the payload, or over a part of it that a field refers to */
	struct reader whole;
	uint32_t pointer_bytes;
	uint64_t work;        /* elements that may still be read */
	bool is_part;         /* r is over a part */
	size_t parts_end;     /* end of the last part in the payload */
	struct outbuf text;   /* for texts */
	event_value_fn *take; /* gets values outside of arrays; may be NULL */
	void *take_ctx;
	uint64_t counts[PAYLOAD_COUNTS];
};

static void payload_field(struct payload *p, size_t i, struct json_writer *w, const char *name);

static void payload_fail(struct payload *p)
{
	p->r->failed = true;
	p->r->fail_at = p->r->pos;
}

static uint64_t payload_number(struct reader *r, size_t bytes)
{
	uint64_t x = 0;
	const void *at = reader_bytes(r, bytes);

	if (at)
		memcpy(&x, at, bytes);
	return x;
}

static int64_t payload_signed(uint64_t x, size_t bytes)
{
	unsigned unused = 64 - 8 * (unsigned)bytes;

	return (int64_t)(x << unused) >> unused;
}

/* Reads one value. Fails the reader if the payload ends, or the type is no single value. */
static void payload_value(struct payload *p, uint8_t type, struct event_value *ret)
{
	struct reader *r = p->r;
	size_t bytes = event_type_bytes(type, p->pointer_bytes);
	float real32;

	*ret = (struct event_value){.type = type};
	switch (type) {
	case EVENT_TEXT16:
		ret->bytes = nettrace_utf16(r, reader_left(r) / 2, &ret->len);
		return;
	case EVENT_TEXT8:
		ret->bytes = reader_cstr(r, reader_left(r), &ret->len);
		return;
	case EVENT_GUID:
		ret->bytes = reader_bytes(r, bytes);
		return;
	case EVENT_VARUINT:
		ret->number = nettrace_varuint(r, 64);
		return;
	case EVENT_VARINT:
		ret->number = nettrace_varuint(r, 64);
		ret->number = (ret->number >> 1) ^ -(ret->number & 1);
		return;
	default:
		break;
	}
	if (!bytes || bytes > sizeof(ret->number)) {
		payload_fail(p);
		return;
	}
	ret->number = payload_number(r, bytes);
	if (type == EVENT_F64) {
		memcpy(&ret->real, &ret->number, sizeof(ret->real));
	} else if (type == EVENT_F32) {
		memcpy(&real32, &ret->number, sizeof(real32));
		ret->real = (double)real32;
	} else if (type == EVENT_I8 || type == EVENT_I16 || type == EVENT_I32) {
		ret->number = (uint64_t)payload_signed(ret->number, bytes);
	}
}

void event_put_guid(struct json_writer *w, const char *key, const unsigned char *guid)
{
	const unsigned char *g = guid;
	char text[40];

	snprintf(text, sizeof(text),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", g[3], g[2],
		 g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
		 g[15]);
	json_put_text(w, key, text);
}

/* Times that no calendar has stay numbers. */
static void payload_put_time(struct json_writer *w, const char *key, uint64_t filetime)
{
	uint64_t seconds = filetime / FILETIME_S;
	char text[64];
	struct tm tm;

	time_t unix_s = (time_t)(seconds - FILETIME_1970);

	if (seconds >= FILETIME_YEARS_MAX || !gmtime_r(&unix_s, &tm)) {
		json_put_u64(w, key, filetime);
		return;
	}
	size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);

	snprintf(text + len, sizeof(text) - len, ".%07uZ", (unsigned)(filetime % FILETIME_S));
	json_put_text(w, key, text);
}

static void payload_put_utf16(struct payload *p, struct json_writer *w, const char *key,
			      const void *units, size_t len)
{
	p->text.len = 0;
	outbuf_utf16(&p->text, units, len);
	json_put_chars(w, key, p->text.data ? p->text.data : "", p->text.len);
}

static void payload_put_value(struct payload *p, struct json_writer *w, const char *key,
			      const struct event_value *v)
{
	unsigned char unit[2] = {(unsigned char)v->number, (unsigned char)(v->number >> 8)};

	switch (v->type) {
	case EVENT_TEXT16:
		payload_put_utf16(p, w, key, v->bytes, v->len);
		break;
	case EVENT_TEXT8:
		json_put_chars(w, key, v->bytes, v->len);
		break;
	case EVENT_GUID:
		event_put_guid(w, key, v->bytes);
		break;
	case EVENT_TIME:
		payload_put_time(w, key, v->number);
		break;
	case EVENT_BOOL32:
	case EVENT_BOOL8:
		json_put_bool(w, key, v->number);
		break;
	case EVENT_CHAR16:
		payload_put_utf16(p, w, key, unit, 1);
		break;
	case EVENT_CHAR8:
		json_put_chars(w, key, (const char *)unit, 1);
		break;
	case EVENT_F32:
		json_put_f64(w, key, v->real, 9);
		break;
	case EVENT_F64:
		json_put_f64(w, key, v->real, 17);
		break;
	case EVENT_I8:
	case EVENT_I16:
	case EVENT_I32:
	case EVENT_I64:
	case EVENT_VARINT:
		json_put_i64(w, key, (int64_t)v->number);
		break;
	default:
		json_put_u64(w, key, v->number);
	}
}

/* Arrays of bytes and of characters are one value. Returns whether this is one. */
static bool payload_text_array(struct payload *p, uint8_t type, uint64_t count,
			       struct json_writer *w, const char *name)
{
	size_t bytes = event_type_bytes(type, p->pointer_bytes);

	if (type != EVENT_U8 && type != EVENT_CHAR8 && type != EVENT_CHAR16)
		return false;
	const void *at =
		count <= reader_left(p->r) / bytes ? reader_bytes(p->r, count * bytes) : NULL;

	if (!at && !p->r->failed)
		payload_fail(p);
	if (!at || !w)
		return true;
	if (type == EVENT_U8)
		json_put_hex(w, name, at, count);
	else if (type == EVENT_CHAR8)
		json_put_chars(w, name, at, count);
	else
		payload_put_utf16(p, w, name, at, count);
	return true;
}

static void payload_array(struct payload *p, size_t element, uint64_t count, struct json_writer *w,
			  const char *name)
{
	event_value_fn *take = p->take;
	struct json_writer array;

	if (payload_text_array(p, p->fields[element].type, count, w, name))
		return;
	p->take = NULL;
	if (w)
		array = json_put_array(w, name);
	for (uint64_t i = 0; i < count && !p->r->failed; i++)
		payload_field(p, element, w ? &array : NULL, NULL);
	p->take = take;
	if (w)
		json_put_end(&array);
}

/* An array elsewhere in the payload. Its elements must have a size, and refer to no other. */
static void payload_located(struct payload *p, const struct event_field *f, struct json_writer *w)
{
	uint32_t location = (uint32_t)payload_number(p->r, sizeof(location));
	size_t at = location & 0xffff, bytes = location >> 16,
	       element = (size_t)(f - p->fields) + 1;
	size_t size = event_type_bytes(p->fields[element].type, p->pointer_bytes);
	event_value_fn *take = p->take;
	struct reader *outer = p->r, part;

	at += f->type == EVENT_REL_LOC ? outer->pos : 0;
	if (outer->failed || p->is_part || at > p->whole.len || bytes > p->whole.len - at ||
	    (!size && p->fields[element].type != EVENT_OBJECT)) {
		payload_fail(p);
		return;
	}
	part = reader_of(p->whole.data + at, bytes);
	p->r = &part;
	p->is_part = true;
	p->take = NULL;
	if (size) {
		payload_array(p, element, bytes / size, w, f->name);
	} else {
		struct json_writer array;

		if (w)
			array = json_put_array(w, f->name);
		while (!part.failed && reader_left(&part))
			payload_field(p, element, w ? &array : NULL, NULL);
		if (w)
			json_put_end(&array);
	}
	p->is_part = false;
	p->take = take;
	p->r = outer;
	if (at + bytes > p->parts_end)
		p->parts_end = at + bytes;
	if (part.failed)
		payload_fail(p);
}

/* Reads the fields in an object, and writes them if w is not NULL. */
static void payload_object(struct payload *p, size_t i, struct json_writer *w, const char *name)
{
	struct json_writer object;

	if (w)
		object = json_put_object(w, name);
	for (size_t k = i + 1; k < p->fields[i].next && !p->r->failed; k = p->fields[k].next)
		payload_field(p, k, w ? &object : NULL, p->fields[k].name);
	if (w)
		json_put_end(&object);
}

static void payload_field(struct payload *p, size_t i, struct json_writer *w, const char *name)
{
	const struct event_field *f = &p->fields[i];
	struct event_value value;

	/* Objects without fields take no bytes, so their number has another limit. */
	if (!p->work--) {
		p->work = 0;
		payload_fail(p);
		return;
	}
	switch (f->type) {
	case EVENT_OBJECT:
		payload_object(p, i, w, name);
		return;
	case EVENT_ARRAY:
		payload_array(p, i + 1, reader_u16(p->r), w, name);
		return;
	case EVENT_FIXED_ARRAY:
		payload_array(p, i + 1, f->count, w, name);
		return;
	case EVENT_COUNTED:
		payload_array(p, i + 1, f->count < PAYLOAD_COUNTS ? p->counts[f->count] : 0, w,
			      name);
		return;
	case EVENT_REL_LOC:
	case EVENT_DATA_LOC:
		payload_located(p, f, w);
		return;
	default:
		payload_value(p, f->type, &value);
		if (i < PAYLOAD_COUNTS)
			p->counts[i] = value.number;
		if (w && !p->r->failed)
			payload_put_value(p, w, name, &value);
		if (p->take && !p->r->failed)
			p->take(p->take_ctx, f->name, &value);
	}
}

static struct payload payload_of(const struct nettrace_event *event, uint32_t pointer_bytes)
{
	const struct nettrace_blob *blob = &event->blob;

	return (struct payload){
		.fields = event->kind->fields,
		.whole = reader_of(blob->payload, blob->payload_len),
		.pointer_bytes = pointer_bytes,
		.work = PAYLOAD_WORK_MIN + (uint64_t)4 * blob->payload_len,
		.text = outbuf_to(-1),
	};
}

int event_payload_find(const struct nettrace_event *event, uint32_t pointer_bytes, const char *name,
		       struct event_value *ret_value)
{
	const struct nettrace_kind *kind = event->kind;
	struct payload p = payload_of(event, pointer_bytes);

	p.r = &p.whole;
	for (size_t i = 0; i < kind->nfields && !p.whole.failed; i = kind->fields[i].next) {
		if (!reader_left(&p.whole))
			return -ENOENT;
		if (strcmp(kind->fields[i].name, name) != 0) {
			payload_field(&p, i, NULL, NULL);
			continue;
		}
		payload_value(&p, kind->fields[i].type, ret_value);
		return p.whole.failed ? -EBADMSG : 0;
	}
	return p.whole.failed ? -EBADMSG : -ENOENT;
}

int event_payload_each(const struct nettrace_event *event, uint32_t pointer_bytes,
		       event_value_fn *take, void *ctx)
{
	const struct nettrace_kind *kind = event->kind;
	struct payload p = payload_of(event, pointer_bytes);

	p.r = &p.whole;
	p.take = take;
	p.take_ctx = ctx;
	for (size_t i = 0; i < kind->nfields && !p.whole.failed && reader_left(&p.whole);
	     i = kind->fields[i].next)
		payload_field(&p, i, NULL, NULL);
	return p.whole.failed ? -EBADMSG : 0;
}

bool event_payload_put(const struct nettrace_event *event, uint32_t pointer_bytes,
		       struct json_writer *w, const char *key)
{
	const struct nettrace_kind *kind = event->kind;
	struct payload p = payload_of(event, pointer_bytes);
	struct json_writer object = json_put_object(w, key);

	p.r = &p.whole;
	for (size_t i = 0; i < kind->nfields && !p.whole.failed && reader_left(&p.whole);
	     i = kind->fields[i].next)
		payload_field(&p, i, &object, kind->fields[i].name);
	json_put_end(&object);
	outbuf_close(&p.text);
	return !p.whole.failed && (!reader_left(&p.whole) || p.parts_end == p.whole.len);
}
