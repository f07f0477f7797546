/* The values of an event, by the fields of its kind. */
#ifndef DOTNET_EVENTPIPE_EVENT_PAYLOAD_H
#define DOTNET_EVENTPIPE_EVENT_PAYLOAD_H

#include "base/json_writer.h"
#include "dotnet/eventpipe/nettrace.h"

/* One value that is neither an object nor an array. */
struct event_value {
	uint8_t type;      /* enum event_type */
	uint64_t number;   /* whole numbers; EVENT_I8 to EVENT_I64 as int64_t; EVENT_TIME */
	double real;       /* EVENT_F32, EVENT_F64 */
	const void *bytes; /* EVENT_GUID: 16; texts, in the payload */
	size_t len;        /* of texts, without the 0: bytes of UTF-8, units of UTF-16 */
};

/*
 * Finds a value by the name of its field, outside of objects and arrays. 0; -ENOENT: the kind has
 * no such field, or the payload ends before it; -EBADMSG: damaged. Older versions end earlier.
 */
int event_payload_find(const struct nettrace_event *event, uint32_t pointer_bytes, const char *name,
		       struct event_value *ret_value);

/* Takes a value and the name of its field. */
typedef void event_value_fn(void *ctx, const char *name, const struct event_value *value);

/*
 * Passes on all values in order, those in objects too, but none in arrays. Values before damage are
 * passed on. 0; -EBADMSG: the payload is damaged, or ends in a value.
 */
int event_payload_each(const struct nettrace_event *event, uint32_t pointer_bytes,
		       event_value_fn *take, void *ctx);

/*
 * Writes all values as an object. Byte arrays are texts "0x...", arrays of characters and texts are
 * texts, times are ISO 8601. Returns whether the fields describe the whole payload; if not, write
 * its bytes, too.
 */
bool event_payload_put(const struct nettrace_event *event, uint32_t pointer_bytes,
		       struct json_writer *w, const char *key);

/* Writes a GUID in its usual form. */
void event_put_guid(struct json_writer *w, const char *key, const unsigned char *guid);

#endif
