#include "dotnet/eventpipe/event_fields.h"

#include "dotnet/eventpipe/ipc.h"
#include "dotnet/eventpipe/nettrace_value.h"

#include <errno.h>
#include <string.h>

static int fields_list(struct event_fields *f, struct reader *r, enum event_fields_form form);

/* Begins a field; *ret: its index. Complete its type later. */
static int fields_begin(struct event_fields *f, uint8_t type, size_t *ret)
{
	struct event_field field = {.type = type};

	if (f->v.len >= EVENT_FIELDS_MAX)
		return -E2BIG;
	*ret = f->v.len;
	if (vec_push(&f->v, field))
		return -ENOMEM;
	return vec_push(&f->names, UINT32_MAX);
}

static void fields_end(struct event_fields *f, size_t field)
{
	f->v.v[field].next = (uint16_t)f->v.len;
}

/* A name of the text that begins at `at`. */
static int fields_name(struct event_fields *f, size_t field, size_t at)
{
	outbuf_char(f->text, 0);
	f->names.v[field] = (uint32_t)at;
	return f->text->error;
}

static size_t fields_read_utf16(struct event_fields *f, struct reader *r)
{
	size_t at = f->text->len, units = 0;
	const void *name = nettrace_utf16(r, EVENT_FIELD_NAME_MAX, &units);

	if (name)
		outbuf_utf16(f->text, name, units);
	return at;
}

static size_t fields_read_utf8(struct event_fields *f, struct reader *r)
{
	size_t at = f->text->len, len = 0;
	const char *name = nettrace_utf8(r, EVENT_FIELD_NAME_MAX, &len);

	if (name)
		outbuf_put(f->text, name, len);
	return at;
}

static bool fields_is_known(uint32_t type, enum event_fields_form form)
{
	switch (type) {
	case EVENT_OBJECT:
	case EVENT_TIME:
	case EVENT_GUID:
	case EVENT_TEXT16:
		return true;
	case EVENT_ARRAY:
		return form != EVENT_FIELDS_V1;
	case EVENT_VARINT:
	case EVENT_VARUINT:
	case EVENT_FIXED_ARRAY:
	case EVENT_CHAR8:
	case EVENT_REL_LOC:
	case EVENT_DATA_LOC:
	case EVENT_BOOL8:
		return form == EVENT_FIELDS_V6;
	default:
		return type >= EVENT_BOOL32 && type <= EVENT_F64;
	}
}

static bool fields_has_element(uint8_t type)
{
	return type == EVENT_ARRAY || type == EVENT_FIXED_ARRAY || type == EVENT_REL_LOC ||
	       type == EVENT_DATA_LOC;
}

/* Reads a type, with the types in it, as a field without a name. */
static int fields_type(struct event_fields *f, struct reader *r, enum event_fields_form form,
		       size_t *ret_field)
{
	uint32_t type = form == EVENT_FIELDS_V6 ? reader_u8(r) : reader_u32(r);
	size_t field, element;
	int error = 0;

	if (r->failed || !fields_is_known(type, form))
		return -EBADMSG;
	if (f->depth >= EVENT_FIELDS_DEPTH_MAX)
		return -E2BIG;
	error = fields_begin(f, (uint8_t)type, &field);
	if (error)
		return error;
	f->depth++;
	if (type == EVENT_OBJECT)
		error = fields_list(f, r, form);
	else if (fields_has_element((uint8_t)type))
		error = fields_type(f, r, form, &element);
	f->depth--;
	if (!error && type == EVENT_FIXED_ARRAY)
		f->v.v[field].count = reader_u16(r);
	fields_end(f, field);
	*ret_field = field;
	return error ? error : r->failed ? -EBADMSG : 0;
}

/* Reads a field of the forms that begin with its size, and skips what follows its type. */
static int fields_sized(struct event_fields *f, struct reader *r, enum event_fields_form form)
{
	uint32_t bytes = form == EVENT_FIELDS_V6 ? reader_u16(r) : reader_u32(r);
	size_t field;

	/* The older form counts its size, too. */
	if (form == EVENT_FIELDS_V2 && (bytes < sizeof(bytes) || r->failed))
		return -EBADMSG;
	bytes -= form == EVENT_FIELDS_V2 ? (uint32_t)sizeof(bytes) : 0;
	const void *data = reader_bytes(r, bytes);

	if (!data)
		return -EBADMSG;
	struct reader one = reader_of(data, bytes);
	size_t name =
		form == EVENT_FIELDS_V6 ? fields_read_utf8(f, &one) : fields_read_utf16(f, &one);
	/* The types in it may have names, too. */
	int error = f->text->error;

	outbuf_char(f->text, 0);
	if (!error)
		error = fields_type(f, &one, form, &field);
	if (!error)
		f->names.v[field] = (uint32_t)name;
	return error;
}

static int fields_list(struct event_fields *f, struct reader *r, enum event_fields_form form)
{
	uint32_t count = form == EVENT_FIELDS_V6 ? reader_u16(r) : reader_u32(r);

	for (uint32_t i = 0; i < count; i++) {
		size_t field;
		int error;

		if (form != EVENT_FIELDS_V1) {
			error = fields_sized(f, r, form);
		} else {
			error = fields_type(f, r, form, &field);
			if (!error)
				error = fields_name(f, field, fields_read_utf16(f, r));
		}
		if (error || r->failed)
			return error ? error : -EBADMSG;
	}
	return r->failed ? -EBADMSG : 0;
}

int event_fields_parse(struct event_fields *f, struct reader *r, enum event_fields_form form)
{
	return fields_list(f, r, form);
}

static void fields_put_list(struct outbuf *out, const struct event_field *all, size_t first,
			    size_t end, enum event_fields_form form);

/* Writes a type, with the types in it. */
static void fields_put_type(struct outbuf *out, const struct event_field *all, size_t field,
			    enum event_fields_form form)
{
	const struct event_field *f = &all[field];

	if (form == EVENT_FIELDS_V6)
		ipc_put_u8(out, f->type);
	else
		ipc_put_u32(out, f->type);
	if (f->type == EVENT_OBJECT)
		fields_put_list(out, all, field + 1, f->next, form);
	else if (fields_has_element(f->type))
		fields_put_type(out, all, field + 1, form);
	if (f->type == EVENT_FIXED_ARRAY)
		ipc_put_u16(out, f->count);
}

/* Writes a field of the forms that begin with its size. */
static void fields_put_sized(struct outbuf *out, const struct event_field *all, size_t field,
			     enum event_fields_form form)
{
	const char *name = all[field].name;
	struct outbuf one = outbuf_to(-1);

	if (form == EVENT_FIELDS_V6)
		nettrace_put_utf8(&one, name);
	else
		nettrace_put_utf16(&one, name, strlen(name));
	fields_put_type(&one, all, field, form);
	if (form == EVENT_FIELDS_V6)
		ipc_put_u16(out, (uint16_t)one.len);
	else
		ipc_put_u32(out, (uint32_t)(one.len + sizeof(uint32_t)));
	outbuf_put(out, one.data, one.len);
	out->error = out->error ? out->error : one.error;
	outbuf_close(&one);
}

static void fields_put_list(struct outbuf *out, const struct event_field *all, size_t first,
			    size_t end, enum event_fields_form form)
{
	uint16_t count = 0;

	for (size_t i = first; i < end; i = all[i].next)
		count++;
	if (form == EVENT_FIELDS_V6)
		ipc_put_u16(out, count);
	else
		ipc_put_u32(out, count);
	for (size_t i = first; i < end; i = all[i].next) {
		if (form != EVENT_FIELDS_V1) {
			fields_put_sized(out, all, i, form);
			continue;
		}
		fields_put_type(out, all, i, form);
		nettrace_put_utf16(out, all[i].name, strlen(all[i].name));
	}
}

int event_fields_put(struct outbuf *out, const struct event_field *fields, size_t n,
		     enum event_fields_form form)
{
	for (size_t i = 0; i < n; i++)
		if (!fields_is_known(fields[i].type, form))
			return -ENOTSUP;
	fields_put_list(out, fields, 0, n, form);
	return out->error;
}

/* Layouts: "NAME:TYPE ...". at moves behind what was read. */

static int layout_list(struct event_fields *f, const char **at, size_t first);

static const struct layout_type {
	const char *word;
	uint8_t type;
} layout_types[] = {
	{"u8", EVENT_U8},       {"u16", EVENT_U16},   {"u32", EVENT_U32},
	{"u64", EVENT_U64},     {"i32", EVENT_I32},   {"i64", EVENT_I64},
	{"f32", EVENT_F32},     {"f64", EVENT_F64},   {"bool", EVENT_BOOL32},
	{"ptr", EVENT_POINTER}, {"guid", EVENT_GUID}, {"text", EVENT_TEXT16},
	{"text8", EVENT_TEXT8},
};

/* Finds a field of the object whose fields begin at first. -1: there is none. */
static int layout_count(const struct event_fields *f, size_t first, size_t end, const char *name,
			size_t len)
{
	for (size_t i = first; i < end; i = f->v.v[i].next) {
		const char *other = f->text->data + f->names.v[i];

		if (!strncmp(other, name, len) && !other[len])
			return (int)i;
	}
	return -1;
}

static int layout_scalar(struct event_fields *f, const char **at, size_t *ret_field)
{
	size_t len = strcspn(*at, " }");

	for (size_t i = 0; i < sizeof(layout_types) / sizeof(layout_types[0]); i++) {
		const struct layout_type *t = &layout_types[i];

		if (strlen(t->word) != len || strncmp(t->word, *at, len) != 0)
			continue;
		*at += len;
		return fields_begin(f, t->type, ret_field);
	}
	return -EBADMSG;
}

/* Reads a type. siblings: where the fields of its object begin. */
static int layout_type(struct event_fields *f, const char **at, size_t siblings, size_t own,
		       size_t *ret_field)
{
	size_t element;
	int count, error;

	if (f->depth >= EVENT_FIELDS_DEPTH_MAX)
		return -E2BIG;
	if (**at != '[' && **at != '{') {
		error = layout_scalar(f, at, ret_field);
		if (!error)
			fields_end(f, *ret_field);
		return error;
	}
	bool is_array = **at == '[';

	error = fields_begin(f, is_array ? EVENT_COUNTED : EVENT_OBJECT, ret_field);
	if (error)
		return error;
	++*at;
	f->depth++;
	if (is_array) {
		size_t len = strcspn(*at, "]");

		count = layout_count(f, siblings, own, *at, len);
		if (count < 0 || !(*at)[len])
			return -EBADMSG;
		f->v.v[*ret_field].count = (uint16_t)count;
		*at += len + 1;
		error = layout_type(f, at, siblings, own, &element);
	} else {
		error = layout_list(f, at, f->v.len);
		if (!error && *(*at)++ != '}')
			error = -EBADMSG;
	}
	f->depth--;
	fields_end(f, *ret_field);
	return error;
}

static int layout_list(struct event_fields *f, const char **at, size_t first)
{
	while (**at && **at != '}') {
		size_t len = strcspn(*at, ": }"), name = f->text->len, field;

		if (!len || (*at)[len] != ':')
			return -EBADMSG;
		outbuf_put(f->text, *at, len);
		outbuf_char(f->text, 0);
		*at += len + 1;
		int error = f->text->error;

		if (!error)
			error = layout_type(f, at, first, f->v.len, &field);
		if (error)
			return error;
		f->names.v[field] = (uint32_t)name;
		while (**at == ' ')
			++*at;
	}
	return 0;
}

int event_fields_of_layout(struct event_fields *f, const char *layout)
{
	int error = layout_list(f, &layout, f->v.len);

	return error ? error : *layout ? -EBADMSG : 0;
}

void event_fields_place(struct event_fields *f, const char *text)
{
	for (size_t i = 0; i < f->v.len; i++)
		f->v.v[i].name = f->names.v[i] == UINT32_MAX ? "" : text + f->names.v[i];
}

void event_fields_free(struct event_fields *f)
{
	vec_free(&f->v);
	vec_free(&f->names);
}

size_t event_type_bytes(uint8_t type, uint32_t pointer_bytes)
{
	switch (type) {
	case EVENT_I8:
	case EVENT_U8:
	case EVENT_CHAR8:
	case EVENT_BOOL8:
		return 1;
	case EVENT_CHAR16:
	case EVENT_I16:
	case EVENT_U16:
		return 2;
	case EVENT_BOOL32:
	case EVENT_I32:
	case EVENT_U32:
	case EVENT_F32:
		return 4;
	case EVENT_I64:
	case EVENT_U64:
	case EVENT_F64:
	case EVENT_TIME:
		return 8;
	case EVENT_GUID:
		return 16;
	case EVENT_POINTER:
		return pointer_bytes;
	default:
		return 0;
	}
}
