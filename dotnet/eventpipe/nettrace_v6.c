/* Part of nettrace: the blocks of version 6. */
#include "dotnet/eventpipe/nettrace_format.h"
#include "dotnet/eventpipe/nettrace_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define V6_TEXT_MAX ((size_t)64 << 10) /* bytes of a key or value */

/* Flags of a sequence point: it forgets more. */
enum { V6_FORGET_THREADS = 1, V6_FORGET_KINDS = 2 };

#define V6_LABEL_LAST 0x80 /* flag in a label's kind: it ends its list */

/* Reads a number from a text of digits, such as the process's id; 0 if it is none. */
static uint32_t v6_number(const char *text, size_t len)
{
	uint64_t x = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || x > UINT32_MAX / 10)
			return 0;
		x = 10 * x + (uint64_t)(text[i] - '0');
	}
	return (uint32_t)x;
}

static bool v6_is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(text, word, len);
}

static int v6_take_trace(struct nettrace *n, struct reader *r)
{
	struct nettrace_trace t = {0};

	for (int i = 0; i < 8; i++)
		t.utc[i] = reader_u16(r);
	t.sync_ticks = reader_u64(r);
	t.ticks_per_second = reader_u64(r);
	t.pointer_bytes = reader_u32(r);
	uint32_t count = reader_u32(r);

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		size_t key_len, len;
		const char *key = nettrace_utf8(r, V6_TEXT_MAX, &key_len);
		const char *value = nettrace_utf8(r, V6_TEXT_MAX, &len);

		if (!value)
			break;
		if (v6_is(key, key_len, "ProcessId"))
			t.pid = v6_number(value, len);
		else if (v6_is(key, key_len, "HardwareThreadCount"))
			t.cpus = v6_number(value, len);
		else if (v6_is(key, key_len, "ExpectedCPUSamplingRate"))
			t.sampling_ns = v6_number(value, len);
	}
	return r->failed ? -EBADMSG : nettrace_take_trace(n, &t);
}

static int v6_take_kinds(struct nettrace *n, struct reader *r)
{
	reader_skip(r, reader_u16(r));
	while (!r->failed && reader_left(r)) {
		size_t at = r->pos;
		uint16_t bytes = reader_u16(r);
		const void *row = reader_bytes(r, bytes);

		if (!row)
			break;
		struct nettrace_kind_parts parts = nettrace_kind_begin();
		int error = nettrace_kind_parse_v6(row, bytes, &parts);

		error = nettrace_add_kind(n, &parts, error, at);
		if (error)
			return error;
	}
	return r->failed ? -EBADMSG : 0;
}

static int v6_add_thread(struct nettrace *n, struct reader *row)
{
	uint64_t index = nettrace_varuint(row, 64);
	struct nettrace_thread thread = {.index = index, .thread = index, .pid = n->trace.pid};
	const uint32_t *place;
	size_t len;
	bool known = true;

	while (known && !row->failed && reader_left(row)) {
		switch (reader_u8(row)) {
		case NETTRACE_V6_THREAD_KEY_VALUE:
			nettrace_utf8(row, V6_TEXT_MAX, &len);
			nettrace_utf8(row, V6_TEXT_MAX, &len);
			break;
		case NETTRACE_V6_THREAD_NAME:
			nettrace_utf8(row, V6_TEXT_MAX, &len);
			break;
		case NETTRACE_V6_THREAD_PID:
			thread.pid = nettrace_varuint(row, 64);
			break;
		case NETTRACE_V6_THREAD_ID:
			thread.thread = nettrace_varuint(row, 64);
			break;
		default:
			known = false; /* its size is unknown */
		}
	}
	if (row->failed)
		return -EBADMSG;
	place = hashmap_get(&n->thread_by_index, index);
	if (place) {
		n->threads.v[*place] = thread;
		return 0;
	}
	if (n->threads.len >= NETTRACE_THREADS_MAX)
		return nettrace_fail(n, -E2BIG, "the trace has too many threads", 0);
	if (vec_push(&n->threads, thread))
		return -ENOMEM;
	return hashmap_put(&n->thread_by_index, index, (uint32_t)(n->threads.len - 1));
}

static int v6_take_threads(struct nettrace *n, struct reader *r)
{
	while (!r->failed && reader_left(r)) {
		uint16_t bytes = reader_u16(r);
		const void *data = reader_bytes(r, bytes);

		if (!data)
			break;
		struct reader row = reader_of(data, bytes);
		int error = v6_add_thread(n, &row);

		if (error)
			return error;
	}
	return r->failed ? -EBADMSG : nettrace_count_memory(n);
}

/* Forgets a thread; the last one takes its place. Its index may be used again. */
static void v6_remove_thread(struct nettrace *n, uint64_t index)
{
	const uint32_t *place = hashmap_get(&n->thread_by_index, index);

	hashmap_remove(&n->sequences, index);
	if (!place)
		return;
	const struct nettrace_thread *last = &n->threads.v[--n->threads.len];

	n->threads.v[*place] = *last;
	*hashmap_get(&n->thread_by_index, last->index) = *place;
	hashmap_remove(&n->thread_by_index, index);
}

/* Takes the counts of threads at a sequence point, or of those that ended. */
static int v6_take_reached(struct nettrace *n, struct reader *r, uint32_t count, bool ended)
{
	for (uint32_t i = 0; i < count && !r->failed && reader_left(r); i++) {
		uint64_t index = nettrace_varuint(r, 64);
		uint32_t sequence = (uint32_t)nettrace_varuint(r, 32);

		if (r->failed)
			break;
		if (nettrace_count_reached(n, index, sequence))
			return -ENOMEM;
		if (ended)
			v6_remove_thread(n, index);
	}
	return r->failed ? -EBADMSG : 0;
}

static int v6_take_sequence_point(struct nettrace *n, struct reader *r)
{
	reader_skip(r, sizeof(uint64_t));
	uint32_t flags = reader_u32(r), count = reader_u32(r);
	int error = v6_take_reached(n, r, count, false);

	nettrace_forget_rows(n);
	if (flags & V6_FORGET_THREADS) {
		n->threads.len = 0;
		hashmap_free(&n->thread_by_index);
		hashmap_free(&n->sequences);
	}
	if (flags & V6_FORGET_KINDS) {
		n->kinds.len = 0;
		hashmap_free(&n->kind_by_id);
		arena_free(&n->text);
	}
	return error;
}

/* Reads a label, of which *ret_last says whether it ends its list. 0; -EBADMSG. */
static int v6_read_label(struct reader *r, struct nettrace_label *label, bool *ret_last)
{
	uint8_t kind = reader_u8(r);

	*ret_last = kind & V6_LABEL_LAST;
	*label = (struct nettrace_label){.kind = kind & ~V6_LABEL_LAST};
	switch (label->kind) {
	case NETTRACE_LABEL_ACTIVITY:
	case NETTRACE_LABEL_RELATED_ACTIVITY:
	case NETTRACE_LABEL_TRACE_ID:
		label->bytes = reader_bytes(r, 16);
		break;
	case NETTRACE_LABEL_SPAN_ID:
	case NETTRACE_LABEL_KEYWORDS:
		label->number = reader_u64(r);
		break;
	case NETTRACE_LABEL_TEXT:
		label->key = nettrace_utf8(r, V6_TEXT_MAX, &label->key_len);
		label->text = nettrace_utf8(r, V6_TEXT_MAX, &label->text_len);
		break;
	case NETTRACE_LABEL_NUMBER: {
		label->key = nettrace_utf8(r, V6_TEXT_MAX, &label->key_len);
		uint64_t x = nettrace_varuint(r, 64);

		label->number = (x >> 1) ^ -(x & 1);
		break;
	}
	case NETTRACE_LABEL_OPCODE:
	case NETTRACE_LABEL_LEVEL:
	case NETTRACE_LABEL_VERSION:
		label->number = reader_u8(r);
		break;
	default:
		return -EBADMSG; /* its size is unknown */
	}
	return r->failed ? -EBADMSG : 0;
}

int nettrace_label_next(struct reader *list, struct nettrace_label *ret_label)
{
	bool last;

	return reader_left(list) && !v6_read_label(list, ret_label, &last);
}

static int v6_take_labels(struct nettrace *n, struct reader *r)
{
	uint32_t id = reader_u32(r), count = reader_u32(r);

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		struct nettrace_label label;
		size_t at = r->pos;
		bool last = false;

		while (!last)
			if (v6_read_label(r, &label, &last))
				return -EBADMSG;
		int error = nettrace_add_row(n, &n->labels, id + i, r->data + at, r->pos - at, at);

		if (error)
			return error;
	}
	return r->failed ? -EBADMSG : 0;
}

static int v6_take_block(struct nettrace *n, uint8_t kind, const unsigned char *body, size_t len)
{
	struct reader r = reader_of(body, len);
	int error;

	switch (kind) {
	case NETTRACE_V6_EVENTS:
		return nettrace_take_blobs(n, body, len, false);
	case NETTRACE_V6_STACKS:
		return nettrace_take_stacks(n, body, len);
	case NETTRACE_V6_METADATA:
		error = v6_take_kinds(n, &r);
		break;
	case NETTRACE_V6_SEQUENCE_POINT:
		error = v6_take_sequence_point(n, &r);
		break;
	case NETTRACE_V6_THREADS:
		error = v6_take_threads(n, &r);
		break;
	case NETTRACE_V6_REMOVE_THREADS:
		error = v6_take_reached(n, &r, UINT32_MAX, true);
		break;
	case NETTRACE_V6_LABELS:
		error = v6_take_labels(n, &r);
		break;
	default:
		n->stats.unknown++;
		return 0;
	}
	if (error == -EBADMSG && !n->why.code)
		return nettrace_fail(n, error, "a block of the trace is damaged",
				     r.failed ? r.fail_at : r.pos);
	return error == -ENOMEM && !n->why.code ? nettrace_fail(n, error, "out of memory", r.pos)
						: error;
}

int nettrace_block_v6(struct nettrace *n, const unsigned char *data, size_t len, size_t *ret_used)
{
	struct reader r = reader_of(data, len);
	uint32_t header = reader_u32(&r), size = header & 0xffffff;
	uint8_t kind = (uint8_t)(header >> 24);
	int error = 0;

	if (r.failed || reader_left(&r) < size)
		return NETTRACE_MORE;
	*ret_used = r.pos + size;
	if (kind == NETTRACE_V6_END) {
		n->ended = true;
		return 0;
	}
	if (kind != NETTRACE_V6_TRACE && !n->trace.ticks_per_second)
		return nettrace_fail(n, -EBADMSG, "a block comes before the head of the trace", 0);
	/* Parsers of a body report offsets within the body. */
	n->taken += sizeof(header);
	if (kind == NETTRACE_V6_TRACE) {
		struct reader body = reader_of(data + r.pos, size);

		error = v6_take_trace(n, &body);
		if (error == -EBADMSG && !n->why.code)
			nettrace_fail(n, error, "the head of the trace is damaged", body.fail_at);
	} else {
		error = v6_take_block(n, kind, data + r.pos, size);
	}
	n->taken -= sizeof(header);
	return error;
}
