/* Part of nettrace: the objects of versions 3 to 5, in the serialization of TraceEvent. */
#include "dotnet/eventpipe/nettrace_format.h"
#include "dotnet/eventpipe/nettrace_impl.h"

#include <errno.h>
#include <string.h>

#define OBJECT_VERSION 5   /* newest version of an object that is read */
#define OBJECT_TYPE_MAX 64 /* bytes of the type name of an object */
#define OBJECT_TRACE_BYTES 48

static int object_take_trace(struct nettrace *n, const unsigned char *body)
{
	struct reader r = reader_of(body, OBJECT_TRACE_BYTES);
	struct nettrace_trace t = {0};

	for (int i = 0; i < 8; i++)
		t.utc[i] = reader_u16(&r);
	t.sync_ticks = reader_u64(&r);
	t.ticks_per_second = reader_u64(&r);
	t.pointer_bytes = reader_u32(&r);
	t.pid = reader_u32(&r);
	t.cpus = reader_u32(&r);
	t.sampling_ns = reader_u32(&r);
	return nettrace_take_trace(n, &t);
}

/* Takes the event count of each thread. Stack ids start anew after it. */
static int object_take_sequence_point(struct nettrace *n, const unsigned char *body, size_t len)
{
	struct reader r = reader_of(body, len);

	reader_skip(&r, sizeof(uint64_t));
	uint32_t count = reader_u32(&r);

	for (uint32_t i = 0; i < count && !r.failed; i++) {
		uint64_t thread = reader_u64(&r);
		uint32_t sequence = reader_u32(&r);

		if (!r.failed && nettrace_count_reached(n, thread, sequence))
			return nettrace_fail(n, -ENOMEM, "out of memory", r.pos);
	}
	nettrace_forget_rows(n);
	return r.failed ? nettrace_fail(n, -EBADMSG, "a sequence point is damaged", r.fail_at) : 0;
}

static int object_take_block(struct nettrace *n, const char *type, const unsigned char *body,
			     size_t len)
{
	if (!strcmp(type, "EventBlock"))
		return nettrace_take_blobs(n, body, len, false);
	if (!strcmp(type, "MetadataBlock"))
		return nettrace_take_blobs(n, body, len, true);
	if (!strcmp(type, "StackBlock"))
		return nettrace_take_stacks(n, body, len);
	if (!strcmp(type, "SPBlock"))
		return object_take_sequence_point(n, body, len);
	n->stats.unknown++;
	return 0;
}

static bool object_begins(uint8_t tag)
{
	return tag == NETTRACE_TAG_BEGIN || tag == NETTRACE_TAG_BEGIN_SHARED;
}

/* Reads the head of an object: its type, up to its body. */
static int object_head(struct nettrace *n, struct reader *r, char *type)
{
	size_t at = r->pos;

	if (reader_left(r) < 15)
		return NETTRACE_MORE;
	if (!object_begins(reader_u8(r)) || reader_u8(r) != NETTRACE_TAG_NULL)
		return nettrace_fail(n, -EBADMSG, "an object has no type", at);
	uint32_t version = reader_u32(r), least = reader_u32(r), len = reader_u32(r);

	if (least > OBJECT_VERSION)
		return nettrace_fail(n, -EBADMSG, "the trace is newer than version 6", at);
	if (!len || len >= OBJECT_TYPE_MAX)
		return nettrace_fail(n, -EBADMSG, "the type of an object has no valid name", at);
	if (reader_left(r) < len + 1)
		return NETTRACE_MORE;
	memcpy(type, reader_bytes(r, len), len);
	type[len] = 0;
	if (reader_u8(r) != NETTRACE_TAG_END)
		return nettrace_fail(n, -EBADMSG, "the type of an object lacks its end", at);
	if (!strcmp(type, "Trace")) {
		if (version < n->trace.version)
			return nettrace_fail(n, -EBADMSG, "the trace is older than version 3", at);
		if (n->trace.version > 3 && version > n->trace.version)
			n->trace.version = OBJECT_VERSION;
	}
	return 0;
}

/* Reads one object. 0 and the bytes consumed; NETTRACE_MORE. */
int nettrace_object(struct nettrace *n, const unsigned char *data, size_t len, size_t *ret_used)
{
	struct reader r = reader_of(data, len);
	char type[OBJECT_TYPE_MAX];
	size_t size = OBJECT_TRACE_BYTES;
	uint8_t tag = reader_u8(&r);

	if (tag == NETTRACE_TAG_NULL) {
		n->ended = true;
		*ret_used = 1;
		return 0;
	}
	if (!object_begins(tag))
		return nettrace_fail(n, -EBADMSG, "expected an object", 0);
	int error = object_head(n, &r, type);
	bool trace = !error && !strcmp(type, "Trace");

	if (error)
		return error;
	if (!trace) {
		if (reader_left(&r) < sizeof(uint32_t))
			return NETTRACE_MORE;
		size = reader_u32(&r);
		if (size > NETTRACE_BLOCK_MAX)
			return nettrace_fail(n, -E2BIG, "a block is too large", r.pos);
		/* Blocks are aligned to 4 bytes in the stream. */
		size_t pad = -(n->stream_at + n->taken + r.pos) & 3;

		if (reader_left(&r) < pad + size + 1)
			return NETTRACE_MORE;
		reader_skip(&r, pad);
	}
	if (reader_left(&r) < size + 1)
		return NETTRACE_MORE;
	const unsigned char *body = reader_bytes(&r, size);

	if (reader_u8(&r) != NETTRACE_TAG_END)
		return nettrace_fail(n, -EBADMSG, "an object lacks its end", r.pos - 1);
	/* Parsers of a body report offsets within the body. */
	size_t before = (size_t)(body - data);

	n->taken += before;
	if (trace)
		error = object_take_trace(n, body);
	else if (!n->trace.ticks_per_second)
		error = nettrace_fail(n, -EBADMSG, "a block comes before the head of the trace", 0);
	else
		error = object_take_block(n, type, body, size);
	n->taken -= before;
	*ret_used = r.pos;
	return error;
}
