/*
 * The fields of a kind of event: from its description in a nettrace stream, or from a layout of
 * event_table.h. Specification: microsoft/perfview, src/TraceEvent/EventPipe/NetTraceFormat.md (6)
 * and NetTraceFormat_v5.md.
 */
#ifndef DOTNET_EVENTPIPE_EVENT_FIELDS_H
#define DOTNET_EVENTPIPE_EVENT_FIELDS_H

#include "base/outbuf.h"
#include "base/reader.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_FIELDS_MAX 4096     /* of one kind of event, including those in objects */
#define EVENT_FIELDS_DEPTH_MAX 16 /* objects and arrays in one another */
#define EVENT_FIELD_NAME_MAX 4096 /* UTF-16 units, or bytes of UTF-8 */

/* Numbers of the format; those from EVENT_POINTER on are of layouts only. */
enum event_type {
	EVENT_OBJECT = 1,
	EVENT_BOOL32 = 3,
	EVENT_CHAR16 = 4, /* a UTF-16 unit */
	EVENT_I8 = 5,
	EVENT_U8 = 6,
	EVENT_I16 = 7,
	EVENT_U16 = 8,
	EVENT_I32 = 9,
	EVENT_U32 = 10,
	EVENT_I64 = 11,
	EVENT_U64 = 12,
	EVENT_F32 = 13,
	EVENT_F64 = 14,
	EVENT_TIME = 16, /* 100 ns since 1601, 8 bytes, unlike the specification */
	EVENT_GUID = 17,
	EVENT_TEXT16 = 18, /* UTF-16, ends with 0 */
	EVENT_ARRAY = 19,  /* u16: number of elements */
	EVENT_VARINT = 20,
	EVENT_VARUINT = 21,
	EVENT_FIXED_ARRAY = 22,
	EVENT_CHAR8 = 23,    /* a UTF-8 unit */
	EVENT_REL_LOC = 24,  /* u16 offset from behind the field, u16 bytes of an array there */
	EVENT_DATA_LOC = 25, /* the same from the start of the payload */
	EVENT_BOOL8 = 26,
	EVENT_POINTER = 64, /* has the pointer size of the trace */
	EVENT_TEXT8,        /* UTF-8, ends with 0 */
	EVENT_COUNTED,      /* an array; an earlier field has the number of its elements */
};

/* A field. An object or array is followed by the fields in it. */
struct event_field {
	const char *name; /* UTF-8; "" for elements of arrays */
	uint8_t type;     /* enum event_type */
	/* EVENT_FIXED_ARRAY: number of elements. EVENT_COUNTED: index of the field that has it. */
	uint16_t count;
	uint16_t next; /* index behind this field and those in it */
};

/* Fields under construction: names are offsets in text until event_fields_place. */
struct event_fields {
	VEC(struct event_field) v;
	VEC(uint32_t) names;
	struct outbuf *text; /* borrowed; gets the names, each with a NUL */
	unsigned depth;
};

/* How a stream describes fields. */
enum event_fields_form {
	EVENT_FIELDS_V1, /* after the head of a kind, up to version 5 */
	EVENT_FIELDS_V2, /* in a tag that follows them */
	EVENT_FIELDS_V6,
};

/*
 * Appends the fields of a description. 0; -EBADMSG: damaged, or a type is unknown; -E2BIG: over a
 * limit above; -ENOMEM. After an error, free f.
 */
int event_fields_parse(struct event_fields *f, struct reader *r, enum event_fields_form form);

/*
 * Writes a description of fields. 0; -ENOTSUP: this form cannot express one of them, and nothing
 * was written; out->error.
 */
int event_fields_put(struct outbuf *out, const struct event_field *fields, size_t n,
		     enum event_fields_form form);

/* Appends the fields of a layout (event_table.h). 0; -EBADMSG: it is wrong; -E2BIG; -ENOMEM. */
int event_fields_of_layout(struct event_fields *f, const char *layout);

/* Sets the names after text moved to `text`. */
void event_fields_place(struct event_fields *f, const char *text);

void event_fields_free(struct event_fields *f);

/* Returns the size of a value of this type in bytes; 0: it depends on the value. */
size_t event_type_bytes(uint8_t type, uint32_t pointer_bytes);

#endif
