#include "dotnet/eventpipe/nettrace.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define NETTRACE_VERSION 4
#define NETTRACE_TYPE_MAX 64 /* bytes of the type name of an object */
#define NETTRACE_TRACE_BYTES 48
/* Internal result: the buffer ends within an object. No listener returns this value. */
#define NETTRACE_MORE INT_MIN

/* Tags of FastSerialization. */
enum {
	TAG_NULL = 1,
	TAG_BEGIN = 5,
	TAG_END = 6,
};

static const char nettrace_head[] = "Nettrace\x14\0\0\0!FastSerialization.1";

struct nettrace_place {
	size_t at, bytes; /* in stack_bytes */
};

struct nettrace {
	struct nettrace_listener listener;
	VEC(unsigned char) in; /* bytes received, including those consumed */
	size_t taken;          /* bytes of it consumed */
	uint64_t stream_at;    /* offset of in.v[0] in the stream */
	bool begun, ended;
	int error;
	struct parse_error why;
	struct nettrace_trace trace;
	struct arena text; /* names of the kinds */
	VEC(struct nettrace_kind) kinds;
	struct hashmap kind_by_id;
	VEC(unsigned char) stack_bytes;
	VEC(struct nettrace_place) stacks;
	struct hashmap stack_by_id;
	struct hashmap sequences; /* last number of each capturing thread */
	struct nettrace_stats stats;
	uint64_t counted; /* bytes in listener.memory */
};

int nettrace_new(const struct nettrace_listener *listener, struct nettrace **ret_trace)
{
	struct nettrace *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->listener = *listener;
	*ret_trace = n;
	return 0;
}

void nettrace_free(struct nettrace *n)
{
	if (!n)
		return;
	vec_free(&n->in);
	arena_free(&n->text);
	vec_free(&n->kinds);
	hashmap_free(&n->kind_by_id);
	vec_free(&n->stack_bytes);
	vec_free(&n->stacks);
	hashmap_free(&n->stack_by_id);
	hashmap_free(&n->sequences);
	share_release(n->listener.memory, &n->counted);
	free(n);
}

bool nettrace_ended(const struct nettrace *n)
{
	return n->ended;
}

struct nettrace_stats nettrace_stats(const struct nettrace *n)
{
	return n->stats;
}

static int nettrace_fail(struct nettrace *n, int code, const char *what, size_t at)
{
	return parse_fail(&n->why, code, what, n->stream_at + n->taken + at);
}

/* Counts the memory that is kept. */
static int nettrace_count_memory(struct nettrace *n)
{
	size_t bytes = vec_bytes(&n->in) + n->text.total_bytes + vec_bytes(&n->kinds) +
		       hashmap_bytes(&n->kind_by_id) + vec_bytes(&n->stack_bytes) +
		       vec_bytes(&n->stacks) + hashmap_bytes(&n->stack_by_id) +
		       hashmap_bytes(&n->sequences);

	return share_count(n->listener.memory, &n->counted, bytes)
		       ? nettrace_fail(n, -ENOMEM, "too little memory is left for its events", 0)
		       : 0;
}

static uint64_t nettrace_ns(const struct nettrace *n, uint64_t ticks)
{
	if (n->trace.ticks_per_second == NS_PER_S)
		return ticks;
	return (uint64_t)((unsigned __int128)ticks * NS_PER_S / n->trace.ticks_per_second);
}

static int nettrace_take_trace(struct nettrace *n, const unsigned char *body)
{
	struct reader r = reader_of(body, NETTRACE_TRACE_BYTES);
	struct nettrace_trace t = {0};

	for (int i = 0; i < 8; i++)
		t.utc[i] = reader_u16(&r);
	t.sync_ticks = reader_u64(&r);
	t.ticks_per_second = reader_u64(&r);
	t.pointer_bytes = reader_u32(&r);
	t.pid = reader_u32(&r);
	t.cpus = reader_u32(&r);
	t.sampling_ns = reader_u32(&r);
	if (!t.ticks_per_second || (t.pointer_bytes != 4 && t.pointer_bytes != 8))
		return nettrace_fail(n, -EBADMSG,
				     "the trace has an invalid clock frequency or pointer size", 0);
	n->trace = t;
	return n->listener.trace ? n->listener.trace(n->listener.ctx, &t) : 0;
}

static int nettrace_add_kind(struct nettrace *n, const struct nettrace_blob *blob, size_t at)
{
	struct outbuf text = outbuf_to(-1);
	struct nettrace_kind kind;
	size_t provider, name;
	int r = nettrace_kind_parse(blob->payload, blob->payload_len, &text, &kind, &provider,
				    &name);
	char *copy = NULL;

	if (!r && (n->kinds.len >= NETTRACE_KINDS_MAX ||
		   n->text.total_bytes + text.len > NETTRACE_KIND_TEXT_MAX))
		r = -E2BIG;
	if (!r && !(copy = arena_alloc_text(&n->text, text.len)))
		r = -ENOMEM;
	if (!r) {
		memcpy(copy, text.data, text.len);
		kind.provider = copy + provider;
		kind.name = copy + name;
		r = vec_push(&n->kinds, kind);
	}
	if (!r)
		r = hashmap_put(&n->kind_by_id, kind.metadata_id, (uint32_t)(n->kinds.len - 1));
	outbuf_close(&text);
	return r ? nettrace_fail(n, r,
				 r == -E2BIG ? "the trace has too many kinds of events"
					     : "the description of a kind of event is damaged",
				 at)
		 : 0;
}

/* Counts dropped events: the gap in the numbers of a thread. */
static int nettrace_count(struct nettrace *n, uint64_t thread, uint32_t sequence)
{
	uint32_t *last;
	int is_new;

	if (n->sequences.len >= NETTRACE_THREADS_MAX && !hashmap_get(&n->sequences, thread))
		return 0;
	if (hashmap_entry(&n->sequences, thread, sequence, &last, &is_new))
		return -ENOMEM;
	uint32_t gap = is_new ? sequence - 1 : sequence - *last - 1;

	/* Events of one thread come in order. A step back means another thread with the same id. */
	if (gap < 1u << 31)
		n->stats.lost += gap;
	*last = sequence;
	return 0;
}

static int nettrace_take_event(struct nettrace *n, const struct nettrace_blob *blob)
{
	const uint32_t *kind = hashmap_get(&n->kind_by_id, blob->metadata_id), *place;
	struct nettrace_event event = {.blob = *blob};

	n->stats.events++;
	if (nettrace_count(n, blob->capture_thread, blob->sequence))
		return -ENOMEM;
	if (!kind) {
		n->stats.unknown++;
		return 0;
	}
	event.kind = &n->kinds.v[*kind];
	event.time_ns = nettrace_ns(n, blob->ticks);
	place = blob->stack_id ? hashmap_get(&n->stack_by_id, blob->stack_id) : NULL;
	if (place && n->stacks.v[*place].bytes) {
		event.stack = n->stack_bytes.v + n->stacks.v[*place].at;
		event.stack_bytes = n->stacks.v[*place].bytes;
	}
	return n->listener.event(n->listener.ctx, &event);
}

static int nettrace_take_blobs(struct nettrace *n, const unsigned char *body, size_t len,
			       bool metadata)
{
	struct nettrace_blobs blobs;
	struct nettrace_blob blob;
	int r = nettrace_blobs_begin(&blobs, body, len);

	while (!r) {
		size_t at = blobs.r.pos;
		int more = nettrace_blobs_next(&blobs, &blob);

		if (!more)
			return nettrace_count_memory(n);
		if (more < 0)
			r = more;
		else if (!metadata)
			r = nettrace_take_event(n, &blob);
		else if ((r = nettrace_add_kind(n, &blob, at)) || (r = nettrace_count_memory(n)))
			return r;
	}
	return r == -EBADMSG ? nettrace_fail(n, r, "a block of events is damaged", blobs.r.fail_at)
			     : r;
}

static void nettrace_forget_stacks(struct nettrace *n)
{
	n->stack_bytes.len = n->stacks.len = 0;
	hashmap_free(&n->stack_by_id);
}

static int nettrace_take_stacks(struct nettrace *n, const unsigned char *body, size_t len)
{
	struct reader r = reader_of(body, len);
	uint32_t id = reader_u32(&r), count = reader_u32(&r);

	for (uint32_t i = 0; i < count && !r.failed; i++) {
		uint32_t bytes = reader_u32(&r);
		const void *addrs = reader_bytes(&r, bytes);
		struct nettrace_place place = {.at = n->stack_bytes.len, .bytes = bytes};

		if (!addrs)
			break;
		if (n->stack_bytes.len + bytes > NETTRACE_STACKS_MAX ||
		    n->stacks.len > NETTRACE_STACKS_MAX / sizeof(place))
			return nettrace_fail(
				n, -E2BIG,
				"the trace has too many stacks between two sequence points", r.pos);
		if (vec_reserve(&n->stack_bytes, bytes) || vec_push(&n->stacks, place) ||
		    hashmap_put(&n->stack_by_id, id + i, (uint32_t)(n->stacks.len - 1)))
			return nettrace_fail(n, -ENOMEM, "out of memory", r.pos);
		if (bytes)
			memcpy(n->stack_bytes.v + n->stack_bytes.len, addrs, bytes);
		n->stack_bytes.len += bytes;
		if (nettrace_count_memory(n))
			return -ENOMEM;
	}
	return r.failed ? nettrace_fail(n, -EBADMSG, "a block of stacks is damaged", r.fail_at) : 0;
}

/* Takes the event count of each thread. Stack ids start anew after it. */
static int nettrace_take_sequence_point(struct nettrace *n, const unsigned char *body, size_t len)
{
	struct reader r = reader_of(body, len);

	reader_skip(&r, sizeof(uint64_t));
	uint32_t count = reader_u32(&r);

	for (uint32_t i = 0; i < count && !r.failed; i++) {
		uint64_t thread = reader_u64(&r);
		uint32_t sequence = reader_u32(&r);
		const uint32_t *last = r.failed ? NULL : hashmap_get(&n->sequences, thread);

		if (r.failed || !sequence)
			continue;
		/* Count events dropped after the thread's last one. */
		if (sequence - (last ? *last : 0) < 1u << 31) {
			n->stats.lost += sequence - (last ? *last : 0);
			if ((last || n->sequences.len < NETTRACE_THREADS_MAX) &&
			    hashmap_put(&n->sequences, thread, sequence))
				return nettrace_fail(n, -ENOMEM, "out of memory", r.pos);
		}
	}
	nettrace_forget_stacks(n);
	return r.failed ? nettrace_fail(n, -EBADMSG, "a sequence point is damaged", r.fail_at) : 0;
}

static int nettrace_take_block(struct nettrace *n, const char *type, const unsigned char *body,
			       size_t len)
{
	if (!strcmp(type, "EventBlock"))
		return nettrace_take_blobs(n, body, len, false);
	if (!strcmp(type, "MetadataBlock"))
		return nettrace_take_blobs(n, body, len, true);
	if (!strcmp(type, "StackBlock"))
		return nettrace_take_stacks(n, body, len);
	if (!strcmp(type, "SPBlock"))
		return nettrace_take_sequence_point(n, body, len);
	n->stats.unknown++;
	return 0;
}

/* Reads the head of an object: its type, up to its body. */
static int nettrace_object_head(struct nettrace *n, struct reader *r, char *type)
{
	size_t at = r->pos;

	if (reader_left(r) < 15)
		return NETTRACE_MORE;
	if (reader_u8(r) != TAG_BEGIN || reader_u8(r) != TAG_NULL)
		return nettrace_fail(n, -EBADMSG, "an object has no type", at);
	uint32_t version = reader_u32(r), least = reader_u32(r), len = reader_u32(r);

	if (least > NETTRACE_VERSION)
		return nettrace_fail(n, -EBADMSG, "the trace is newer than version 4", at);
	if (!len || len >= NETTRACE_TYPE_MAX)
		return nettrace_fail(n, -EBADMSG, "the type of an object has no valid name", at);
	if (reader_left(r) < len + 1)
		return NETTRACE_MORE;
	memcpy(type, reader_bytes(r, len), len);
	type[len] = 0;
	if (reader_u8(r) != TAG_END)
		return nettrace_fail(n, -EBADMSG, "the type of an object lacks its end", at);
	if (!strcmp(type, "Trace") && version < NETTRACE_VERSION)
		return nettrace_fail(n, -EBADMSG, "the trace is older than version 4", at);
	return 0;
}

/* Reads one object. 0 and the bytes consumed; NETTRACE_MORE. */
static int nettrace_object(struct nettrace *n, const unsigned char *data, size_t len,
			   size_t *ret_used)
{
	struct reader r = reader_of(data, len);
	char type[NETTRACE_TYPE_MAX];
	size_t size = NETTRACE_TRACE_BYTES;
	uint8_t tag = reader_u8(&r);

	if (tag == TAG_NULL) {
		n->ended = true;
		*ret_used = 1;
		return 0;
	}
	if (tag != TAG_BEGIN)
		return nettrace_fail(n, -EBADMSG, "expected an object", 0);
	int error = nettrace_object_head(n, &r, type);
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

	if (reader_u8(&r) != TAG_END)
		return nettrace_fail(n, -EBADMSG, "an object lacks its end", r.pos - 1);
	/* Parsers of a body report offsets within the body. */
	size_t before = (size_t)(body - data);

	n->taken += before;
	if (trace)
		error = nettrace_take_trace(n, body);
	else if (!n->trace.ticks_per_second)
		error = nettrace_fail(n, -EBADMSG, "a block comes before the head of the trace", 0);
	else
		error = nettrace_take_block(n, type, body, size);
	n->taken -= before;
	*ret_used = r.pos;
	return error;
}

static int nettrace_step(struct nettrace *n, size_t *ret_used)
{
	const unsigned char *data = n->in.v + n->taken;
	size_t len = n->in.len - n->taken, head = sizeof(nettrace_head) - 1;

	if (n->begun)
		return len ? nettrace_object(n, data, len, ret_used) : NETTRACE_MORE;
	if (len && memcmp(data, nettrace_head, len < head ? len : head))
		return nettrace_fail(n, -EBADMSG, "not a nettrace stream", 0);
	if (len < head)
		return NETTRACE_MORE;
	n->begun = true;
	*ret_used = head;
	return 0;
}

int nettrace_feed(struct nettrace *n, const void *data, size_t len, struct parse_error *err)
{
	int r = n->error;
	size_t used = 0;

	n->stats.bytes += len;
	if (!r && !n->ended) {
		if (vec_reserve(&n->in, len)) {
			r = nettrace_fail(n, -ENOMEM, "out of memory", 0);
		} else if (len) {
			memcpy(n->in.v + n->in.len, data, len);
			n->in.len += len;
			r = nettrace_count_memory(n);
		}
	}
	while (!r && !n->ended) {
		r = nettrace_step(n, &used);
		if (!r)
			n->taken += used;
	}
	if (r == NETTRACE_MORE)
		r = 0;
	if (!r && n->taken) {
		memmove(n->in.v, n->in.v + n->taken, n->in.len - n->taken);
		n->in.len -= n->taken;
		n->stream_at += n->taken;
		n->taken = 0;
	}
	n->error = r;
	return r && n->why.code == r ? parse_fail(err, r, n->why.what, n->why.offset) : r;
}
