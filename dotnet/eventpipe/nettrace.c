#include "base/clock.h"
#include "dotnet/eventpipe/event_table.h"
#include "dotnet/eventpipe/nettrace_format.h"
#include "dotnet/eventpipe/nettrace_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char head_v3[] = NETTRACE_HEAD_V3;
static const char head_v4[] = NETTRACE_HEAD_V4;
static const char head_v6[] = NETTRACE_HEAD_V6;

int nettrace_new(const struct nettrace_listener *listener, struct nettrace **ret_trace)
{
	struct nettrace *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->listener = *listener;
	*ret_trace = n;
	return 0;
}

static void rows_free(struct nettrace_rows *rows)
{
	vec_free(&rows->bytes);
	vec_free(&rows->places);
	hashmap_free(&rows->by_id);
}

void nettrace_free(struct nettrace *n)
{
	if (!n)
		return;
	vec_free(&n->in);
	arena_free(&n->text);
	vec_free(&n->kinds);
	hashmap_free(&n->kind_by_id);
	rows_free(&n->stacks);
	rows_free(&n->labels);
	vec_free(&n->threads);
	hashmap_free(&n->thread_by_index);
	hashmap_free(&n->sequences);
	share_release(n->listener.memory, &n->counted);
	free(n);
}

bool nettrace_ended(const struct nettrace *n)
{
	return n->ended;
}

uint64_t nettrace_whole(const struct nettrace *n)
{
	return n->stream_at + n->taken - n->end_bytes;
}

uint32_t nettrace_last_kind_id(const struct nettrace *n)
{
	return n->last_kind_id;
}

struct nettrace_stats nettrace_stats(const struct nettrace *n)
{
	return n->stats;
}

int nettrace_fail(struct nettrace *n, int code, const char *what, size_t at)
{
	return parse_fail(&n->why, code, what, n->stream_at + n->taken + at);
}

static size_t rows_bytes(const struct nettrace_rows *rows)
{
	return vec_bytes(&rows->bytes) + vec_bytes(&rows->places) + hashmap_bytes(&rows->by_id);
}

int nettrace_count_memory(struct nettrace *n)
{
	size_t bytes = vec_bytes(&n->in) + n->text.total_bytes + vec_bytes(&n->kinds) +
		       hashmap_bytes(&n->kind_by_id) + rows_bytes(&n->stacks) +
		       rows_bytes(&n->labels) + vec_bytes(&n->threads) +
		       hashmap_bytes(&n->thread_by_index) + hashmap_bytes(&n->sequences);

	return share_count(n->listener.memory, &n->counted, bytes)
		       ? nettrace_fail(n, -ENOMEM, "too little memory is left for its events", 0)
		       : 0;
}

uint64_t nettrace_ns(const struct nettrace_trace *trace, uint64_t ticks)
{
	if (!trace->ticks_per_second || trace->ticks_per_second == NS_PER_S)
		return ticks;
	return (uint64_t)((unsigned __int128)ticks * NS_PER_S / trace->ticks_per_second);
}

int nettrace_take_trace(struct nettrace *n, const struct nettrace_trace *trace)
{
	unsigned version = n->trace.version;

	if (!trace->ticks_per_second || (trace->pointer_bytes != 4 && trace->pointer_bytes != 8))
		return nettrace_fail(n, -EBADMSG,
				     "the trace has an invalid clock frequency or pointer size", 0);
	n->trace = *trace;
	n->trace.version = version;
	return n->listener.trace ? n->listener.trace(n->listener.ctx, &n->trace) : 0;
}

/* Adds the fields of a layout to a kind whose own description has none. 0; -ENOMEM. */
static int kind_fields_of_table(struct nettrace_kind_parts *parts)
{
	const struct nettrace_kind *kind = &parts->kind;
	const struct event_layout *layout = event_layout_find(parts->text.data + parts->provider,
							      kind->event_id, kind->version);

	if (!layout || parts->fields.v.len)
		return 0;
	if (!parts->text.data[parts->name]) {
		parts->name = parts->text.len;
		outbuf_str(&parts->text, layout->name);
		outbuf_char(&parts->text, 0);
	}
	event_fields_free(&parts->fields);
	parts->fields.text = &parts->text;
	return event_fields_of_layout(&parts->fields, layout->fields);
}

/* Copies the texts and fields of a kind to where they stay. */
static int kind_keep(struct nettrace *n, struct nettrace_kind_parts *parts)
{
	struct nettrace_kind kind = parts->kind;
	size_t fields = parts->fields.v.len * sizeof(*parts->fields.v.v);

	if (n->kinds.len >= NETTRACE_KINDS_MAX ||
	    n->text.total_bytes + parts->text.len + fields > NETTRACE_KIND_TEXT_MAX)
		return -E2BIG;
	char *text = arena_alloc_text(&n->text, parts->text.len);
	void *copy = fields ? arena_alloc(&n->text, fields) : NULL;

	if (!text || (fields && !copy))
		return -ENOMEM;
	memcpy(text, parts->text.data, parts->text.len);
	event_fields_place(&parts->fields, text);
	if (fields)
		memcpy(copy, parts->fields.v.v, fields);
	kind.provider = text + parts->provider;
	kind.name = text + parts->name;
	kind.fields = copy;
	kind.nfields = parts->fields.v.len;
	kind.number = n->nkinds++;
	if (kind.metadata_id > n->last_kind_id)
		n->last_kind_id = kind.metadata_id;
	return vec_push(&n->kinds, kind);
}

int nettrace_add_kind(struct nettrace *n, struct nettrace_kind_parts *parts, int error, size_t at)
{
	if (!error)
		error = kind_fields_of_table(parts);
	if (!error)
		error = kind_keep(n, parts);
	if (!error)
		error = hashmap_put(&n->kind_by_id, parts->kind.metadata_id,
				    (uint32_t)(n->kinds.len - 1));
	nettrace_kind_end(parts);
	return error ? nettrace_fail(n, error,
				     error == -E2BIG
					     ? "the trace has too many kinds of events"
					     : "the description of a kind of event is damaged",
				     at)
		     : nettrace_count_memory(n);
}

/* Counts dropped events: the gap in the numbers of a thread. */
static int nettrace_count(struct nettrace *n, uint64_t thread, uint32_t sequence)
{
	uint32_t *last;
	int is_new;

	if (n->trace.version < 4)
		return 0; /* events have no numbers */
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

int nettrace_count_reached(struct nettrace *n, uint64_t thread, uint32_t sequence)
{
	const uint32_t *last = hashmap_get(&n->sequences, thread);
	uint32_t gap = sequence - (last ? *last : 0);

	if (!sequence || gap >= 1u << 31)
		return 0;
	n->stats.lost += gap;
	return (last || n->sequences.len < NETTRACE_THREADS_MAX) &&
			       hashmap_put(&n->sequences, thread, sequence)
		       ? -ENOMEM
		       : 0;
}

static const unsigned char *rows_get(const struct nettrace_rows *rows, uint32_t id, size_t *ret_len)
{
	const uint32_t *place = id ? hashmap_get(&rows->by_id, id) : NULL;

	*ret_len = place ? rows->places.v[*place].bytes : 0;
	return *ret_len ? rows->bytes.v + rows->places.v[*place].at : NULL;
}

/* Version 6 has indexes instead of ids. An unknown index stays as it is. */
static void event_threads(const struct nettrace *n, struct nettrace_event *event)
{
	const uint32_t *about, *by;

	event->thread = event->blob.thread;
	event->capture_thread = event->blob.capture_thread;
	event->pid = n->trace.pid;
	if (n->trace.version < 6)
		return;
	about = hashmap_get(&n->thread_by_index, event->thread);
	by = hashmap_get(&n->thread_by_index, event->capture_thread);
	if (about) {
		event->thread = n->threads.v[*about].thread;
		event->pid = n->threads.v[*about].pid;
	}
	if (by)
		event->capture_thread = n->threads.v[*by].thread;
}

/* Activities are labels, too; further ones can replace what the kind says. */
static void event_labels(struct nettrace_event *event, struct nettrace_kind *kind)
{
	struct reader list = reader_of(event->labels, event->labels_bytes);
	struct nettrace_label label;

	while (nettrace_label_next(&list, &label)) {
		switch (label.kind) {
		case NETTRACE_LABEL_ACTIVITY:
			memcpy(event->blob.activity, label.bytes, sizeof(event->blob.activity));
			break;
		case NETTRACE_LABEL_RELATED_ACTIVITY:
			memcpy(event->blob.related_activity, label.bytes,
			       sizeof(event->blob.related_activity));
			break;
		case NETTRACE_LABEL_OPCODE:
			kind->opcode = (uint32_t)label.number;
			break;
		case NETTRACE_LABEL_KEYWORDS:
			kind->keywords = label.number;
			break;
		case NETTRACE_LABEL_LEVEL:
			kind->level = (uint32_t)label.number;
			break;
		case NETTRACE_LABEL_VERSION:
			kind->version = (uint32_t)label.number;
			break;
		default:
			break;
		}
	}
}

static int nettrace_take_event(struct nettrace *n, const struct nettrace_blob *blob)
{
	const uint32_t *kind = hashmap_get(&n->kind_by_id, blob->metadata_id);
	struct nettrace_event event = {.blob = *blob};
	struct nettrace_kind own;

	n->stats.events++;
	if (nettrace_count(n, blob->capture_thread, blob->sequence))
		return -ENOMEM;
	if (!kind) {
		n->stats.unknown++;
		return 0;
	}
	event.kind = &n->kinds.v[*kind];
	event.time_ns = nettrace_ns(&n->trace, blob->ticks);
	event_threads(n, &event);
	event.stack = rows_get(&n->stacks, blob->stack_id, &event.stack_bytes);
	if (blob->stack_len) {
		event.stack = blob->stack;
		event.stack_bytes = blob->stack_len;
	}
	event.labels = rows_get(&n->labels, blob->labels_id, &event.labels_bytes);
	if (event.labels) {
		own = *event.kind;
		event_labels(&event, &own);
		event.kind = &own;
	}
	return n->listener.event(n->listener.ctx, &event);
}

int nettrace_take_blobs(struct nettrace *n, const unsigned char *body, size_t len, bool metadata)
{
	struct nettrace_blobs blobs;
	struct nettrace_blob blob;
	int r = nettrace_blobs_begin(&blobs, body, len, n->trace.version);

	while (!r) {
		size_t at = blobs.r.pos;
		int more = nettrace_blobs_next(&blobs, &blob);

		if (!more)
			return nettrace_count_memory(n);
		if (more < 0) {
			r = more;
		} else if (metadata || (n->trace.version < 4 && !blob.metadata_id)) {
			struct nettrace_kind_parts parts = nettrace_kind_begin();

			r = nettrace_kind_parse(blob.payload, blob.payload_len, &parts);
			r = nettrace_add_kind(n, &parts, r, at);
			if (r)
				return r;
		} else {
			r = nettrace_take_event(n, &blob);
		}
	}
	return r == -EBADMSG ? nettrace_fail(n, r, "a block of events is damaged", blobs.r.fail_at)
			     : r;
}

void nettrace_forget_rows(struct nettrace *n)
{
	n->stacks.bytes.len = n->stacks.places.len = 0;
	n->labels.bytes.len = n->labels.places.len = 0;
	hashmap_free(&n->stacks.by_id);
	hashmap_free(&n->labels.by_id);
}

int nettrace_add_row(struct nettrace *n, struct nettrace_rows *rows, uint32_t id, const void *bytes,
		     size_t len, size_t at)
{
	struct nettrace_place place = {.at = rows->bytes.len, .bytes = len};

	if (rows->bytes.len + len > NETTRACE_STACKS_MAX ||
	    rows->places.len > NETTRACE_STACKS_MAX / sizeof(place))
		return nettrace_fail(
			n, -E2BIG,
			"the trace has too many stacks or labels between two sequence points", at);
	if (vec_reserve(&rows->bytes, len) || vec_push(&rows->places, place) ||
	    hashmap_put(&rows->by_id, id, (uint32_t)(rows->places.len - 1)))
		return nettrace_fail(n, -ENOMEM, "out of memory", at);
	if (len)
		memcpy(rows->bytes.v + rows->bytes.len, bytes, len);
	rows->bytes.len += len;
	return nettrace_count_memory(n);
}

int nettrace_take_stacks(struct nettrace *n, const unsigned char *body, size_t len)
{
	struct reader r = reader_of(body, len);
	uint32_t id = reader_u32(&r), count = reader_u32(&r);

	for (uint32_t i = 0; i < count && !r.failed; i++) {
		uint32_t bytes = reader_u32(&r);
		const void *addrs = reader_bytes(&r, bytes);

		if (!addrs)
			break;
		int error = nettrace_add_row(n, &n->stacks, id + i, addrs, bytes, r.pos);

		if (error)
			return error;
	}
	return r.failed ? nettrace_fail(n, -EBADMSG, "a block of stacks is damaged", r.fail_at) : 0;
}

/* Whether data, perhaps cut, begins with a head. */
static bool step_is_head(const unsigned char *data, size_t len, const char *head, size_t bytes)
{
	return !memcmp(data, head, len < bytes ? len : bytes);
}

/* Finds the version of the stream. A version of 5 begins as 4 does; its first object tells. */
static int step_begin(struct nettrace *n, const unsigned char *data, size_t len, size_t *ret_used)
{
	size_t v3 = sizeof(head_v3) - 1, v4 = sizeof(head_v4) - 1, v6 = sizeof(head_v6);

	if (!len)
		return NETTRACE_MORE;
	if (step_is_head(data, len, head_v6, v6)) {
		if (len < v6 + 2 * sizeof(uint32_t))
			return NETTRACE_MORE;
		struct reader r = reader_of(data + v6, 2 * sizeof(uint32_t));

		if (reader_u32(&r) != 6)
			return nettrace_fail(n, -EBADMSG, "the trace is newer than version 6", v6);
		n->trace.version = 6;
		*ret_used = v6 + 2 * sizeof(uint32_t);
	} else if (step_is_head(data, len, head_v4, v4)) {
		n->trace.version = 4;
		*ret_used = v4;
	} else if (step_is_head(data, len, head_v3, v3)) {
		n->trace.version = 3;
		*ret_used = v3;
	} else {
		return nettrace_fail(n, -EBADMSG, "not a nettrace stream", 0);
	}
	if (len < *ret_used)
		return NETTRACE_MORE;
	n->begun = true;
	return 0;
}

static int nettrace_step(struct nettrace *n, size_t *ret_used)
{
	const unsigned char *data = n->in.v + n->taken;
	size_t len = n->in.len - n->taken;

	if (!n->begun)
		return step_begin(n, data, len, ret_used);
	if (!len)
		return NETTRACE_MORE;
	return n->trace.version == 6 ? nettrace_block_v6(n, data, len, ret_used)
				     : nettrace_object(n, data, len, ret_used);
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
		if (!r && n->ended)
			n->end_bytes = used;
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
