#include "dotnet/eventpipe/nettrace_writer.h"

#include "dotnet/eventpipe/ipc.h"
#include "dotnet/eventpipe/nettrace_format.h"
#include "dotnet/eventpipe/nettrace_value.h"

#include <stdio.h>
#include <string.h>

#define WRITER_BLOCK_BYTES ((size_t)96 << 10) /* of events; about as runtimes write */
#define WRITER_ROW_MAX UINT16_MAX             /* bytes of a row of version 6 */

struct nettrace_writer nettrace_writer_to(struct outbuf *out, unsigned version, uint64_t begin)
{
	return (struct nettrace_writer){
		.out = out, .version = version, .begin = begin, .block = outbuf_to(-1)};
}

static uint64_t writer_offset(const struct nettrace_writer *w)
{
	return w->begin + w->out->written + w->out->len;
}

/* The begin of an object of version 4. */
static void writer_object(struct nettrace_writer *w, const char *type, uint32_t version)
{
	ipc_put_u8(w->out, NETTRACE_TAG_BEGIN);
	ipc_put_u8(w->out, NETTRACE_TAG_BEGIN);
	ipc_put_u8(w->out, NETTRACE_TAG_NULL);
	ipc_put_u32(w->out, version);
	ipc_put_u32(w->out, version);
	ipc_put_u32(w->out, (uint32_t)strlen(type));
	outbuf_str(w->out, type);
	ipc_put_u8(w->out, NETTRACE_TAG_END);
}

/* Writes a block. type: its name in version 4; kind: its number in version 6. Empties body. */
static void writer_block(struct nettrace_writer *w, const char *type, enum nettrace_v6_block kind,
			 struct outbuf *body)
{
	static const char zeros[4];

	if (w->version == 6) {
		ipc_put_u32(w->out, (uint32_t)body->len | (uint32_t)kind << 24);
	} else {
		writer_object(w, type, 2);
		ipc_put_u32(w->out, (uint32_t)body->len);
		outbuf_put(w->out, zeros, -writer_offset(w) % sizeof(zeros));
	}
	outbuf_put(w->out, body->data, body->len);
	if (w->version != 6)
		ipc_put_u8(w->out, NETTRACE_TAG_END);
	w->out->error = w->out->error ? w->out->error : body->error;
	body->len = 0;
}

static void writer_trace(struct outbuf *out, const struct nettrace_trace *trace)
{
	for (int i = 0; i < 8; i++)
		ipc_put_u16(out, trace->utc[i]);
	ipc_put_u64(out, trace->sync_ticks);
	ipc_put_u64(out, trace->ticks_per_second);
	ipc_put_u32(out, trace->pointer_bytes);
}

static void writer_number(struct outbuf *out, const char *key, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	nettrace_put_utf8(out, key);
	nettrace_put_utf8(out, text);
}

void nettrace_writer_head(struct nettrace_writer *w, const struct nettrace_trace *trace)
{
	struct outbuf body = outbuf_to(-1);

	writer_trace(&body, trace);
	if (w->version == 6) {
		outbuf_put(w->out, NETTRACE_HEAD_V6, sizeof(NETTRACE_HEAD_V6));
		ipc_put_u32(w->out, 6);
		ipc_put_u32(w->out, 0);
		ipc_put_u32(&body, 3);
		writer_number(&body, "ProcessId", trace->pid);
		writer_number(&body, "HardwareThreadCount", trace->cpus);
		writer_number(&body, "ExpectedCPUSamplingRate", trace->sampling_ns);
		writer_block(w, NULL, NETTRACE_V6_TRACE, &body);
	} else {
		outbuf_put(w->out, NETTRACE_HEAD_V4, sizeof(NETTRACE_HEAD_V4) - 1);
		writer_object(w, "Trace", 4);
		ipc_put_u32(&body, trace->pid);
		ipc_put_u32(&body, trace->cpus);
		ipc_put_u32(&body, trace->sampling_ns);
		outbuf_put(w->out, body.data, body.len);
		ipc_put_u8(w->out, NETTRACE_TAG_END);
	}
	w->out->error = w->out->error ? w->out->error : body.error;
	outbuf_close(&body);
}

/* The header of a block of events: its size, the flag for compressed headers, and the times. */
static void writer_begin_events(struct outbuf *block, uint64_t first_ticks, uint64_t last_ticks)
{
	ipc_put_u16(block, 20);
	ipc_put_u16(block, NETTRACE_BLOCK_COMPRESSED);
	ipc_put_u64(block, first_ticks);
	ipc_put_u64(block, last_ticks);
}

/* Writes the tags behind the fields of a kind. */
static void writer_tags(struct outbuf *out, const struct nettrace_kind *kind,
			const struct outbuf *fields)
{
	if (fields->len) {
		ipc_put_u32(out, (uint32_t)fields->len);
		ipc_put_u8(out, NETTRACE_KIND_TAG_FIELDS);
		outbuf_put(out, fields->data, fields->len);
	}
	if (kind->opcode) {
		ipc_put_u32(out, 1);
		ipc_put_u8(out, NETTRACE_KIND_TAG_OPCODE);
		ipc_put_u8(out, (uint8_t)kind->opcode);
	}
}

static void writer_kind_v4(struct nettrace_writer *w, const struct nettrace_kind *kind)
{
	struct outbuf payload = outbuf_to(-1), fields = outbuf_to(-1), block = outbuf_to(-1);

	ipc_put_u32(&payload, kind->metadata_id);
	nettrace_put_utf16(&payload, kind->provider, strlen(kind->provider));
	ipc_put_u32(&payload, kind->event_id);
	nettrace_put_utf16(&payload, kind->name, strlen(kind->name));
	ipc_put_u64(&payload, kind->keywords);
	ipc_put_u32(&payload, kind->version);
	ipc_put_u32(&payload, kind->level);
	if (event_fields_put(&payload, kind->fields, kind->nfields, EVENT_FIELDS_V1)) {
		ipc_put_u32(&payload, 0);
		(void)event_fields_put(&fields, kind->fields, kind->nfields, EVENT_FIELDS_V2);
	}
	writer_tags(&payload, kind, &fields);
	writer_begin_events(&block, 0, 0);
	/* Runtimes write only these fields of an event here. Its number comes before 0. */
	ipc_put_u8(&block, NETTRACE_BLOB_CAPTURE | NETTRACE_BLOB_PAYLOAD);
	nettrace_put_varuint(&block, UINT32_MAX);
	nettrace_put_varuint(&block, 0);
	nettrace_put_varuint(&block, 0);
	nettrace_put_varuint(&block, 0); /* ticks */
	nettrace_put_varuint(&block, payload.len);
	outbuf_put(&block, payload.data, payload.len);
	block.error = block.error ? block.error : payload.error ? payload.error : fields.error;
	writer_block(w, "MetadataBlock", NETTRACE_V6_METADATA, &block);
	outbuf_close(&payload);
	outbuf_close(&fields);
	outbuf_close(&block);
}

/* Appends what has its size in 16 bits before it. Empties it. */
static void writer_row(struct outbuf *out, struct outbuf *row)
{
	ipc_put_u16(out, (uint16_t)row->len);
	outbuf_put(out, row->data, row->len);
	out->error = out->error ? out->error : row->error;
	row->len = 0;
}

static void writer_kind_v6(struct nettrace_writer *w, const struct nettrace_kind *kind)
{
	struct outbuf row = outbuf_to(-1), options = outbuf_to(-1), block = outbuf_to(-1);

	nettrace_put_varuint(&row, kind->metadata_id);
	nettrace_put_utf8(&row, kind->provider);
	nettrace_put_varuint(&row, kind->event_id);
	nettrace_put_utf8(&row, kind->name);
	size_t head = row.len;

	if (event_fields_put(&row, kind->fields, kind->nfields, EVENT_FIELDS_V6) ||
	    row.len > WRITER_ROW_MAX / 2) {
		row.len = head;
		ipc_put_u16(&row, 0);
	}
	ipc_put_u8(&options, NETTRACE_KIND_V6_OPCODE);
	ipc_put_u8(&options, (uint8_t)kind->opcode);
	ipc_put_u8(&options, NETTRACE_KIND_V6_KEYWORDS);
	ipc_put_u64(&options, kind->keywords);
	ipc_put_u8(&options, NETTRACE_KIND_V6_LEVEL);
	ipc_put_u8(&options, (uint8_t)kind->level);
	ipc_put_u8(&options, NETTRACE_KIND_V6_VERSION);
	ipc_put_u8(&options, (uint8_t)kind->version);
	writer_row(&row, &options);
	ipc_put_u16(&block, 0); /* bytes of the header */
	writer_row(&block, &row);
	writer_block(w, NULL, NETTRACE_V6_METADATA, &block);
	outbuf_close(&row);
	outbuf_close(&options);
	outbuf_close(&block);
}

void nettrace_writer_kind(struct nettrace_writer *w, const struct nettrace_kind *kind)
{
	nettrace_writer_flush(w);
	if (w->version == 6)
		writer_kind_v6(w, kind);
	else
		writer_kind_v4(w, kind);
}

void nettrace_writer_thread(struct nettrace_writer *w, uint64_t index, uint64_t pid,
			    uint64_t thread)
{
	struct outbuf row = outbuf_to(-1), block = outbuf_to(-1);

	if (w->version != 6)
		return;
	nettrace_writer_flush(w);
	nettrace_put_varuint(&row, index);
	ipc_put_u8(&row, NETTRACE_V6_THREAD_PID);
	nettrace_put_varuint(&row, pid);
	ipc_put_u8(&row, NETTRACE_V6_THREAD_ID);
	nettrace_put_varuint(&row, thread);
	writer_row(&block, &row);
	writer_block(w, NULL, NETTRACE_V6_THREADS, &block);
	outbuf_close(&row);
	outbuf_close(&block);
}

void nettrace_writer_stack(struct nettrace_writer *w, uint32_t id, const void *addresses,
			   size_t bytes)
{
	struct outbuf block = outbuf_to(-1);

	nettrace_writer_flush(w);
	ipc_put_u32(&block, id);
	ipc_put_u32(&block, 1);
	ipc_put_u32(&block, (uint32_t)bytes);
	outbuf_put(&block, addresses, bytes);
	writer_block(w, "StackBlock", NETTRACE_V6_STACKS, &block);
	outbuf_close(&block);
}

/* Flags of the fields that differ from those of the last event. */
static uint8_t writer_changes(const struct nettrace_writer *w, const struct nettrace_blob *blob)
{
	const struct nettrace_blob *last = &w->last;
	uint8_t flags = 0;

	if (blob->metadata_id != last->metadata_id)
		flags |= NETTRACE_BLOB_METADATA;
	if (blob->sequence != last->sequence + 1 || blob->capture_thread != last->capture_thread ||
	    blob->processor != last->processor)
		flags |= NETTRACE_BLOB_CAPTURE;
	if (blob->thread != last->thread)
		flags |= NETTRACE_BLOB_THREAD;
	if (blob->stack_id != last->stack_id)
		flags |= NETTRACE_BLOB_STACK;
	if (blob->payload_len != last->payload_len)
		flags |= NETTRACE_BLOB_PAYLOAD;
	if (w->version == 6)
		return flags | (blob->labels_id != last->labels_id ? NETTRACE_BLOB_ACTIVITY : 0);
	if (memcmp(blob->activity, last->activity, sizeof(last->activity)))
		flags |= NETTRACE_BLOB_ACTIVITY;
	if (memcmp(blob->related_activity, last->related_activity, sizeof(last->activity)))
		flags |= NETTRACE_BLOB_RELATED;
	return flags;
}

static void writer_activities(struct nettrace_writer *w, const struct nettrace_blob *blob,
			      uint8_t flags)
{
	if (w->version == 6) {
		if (flags & NETTRACE_BLOB_ACTIVITY)
			nettrace_put_varuint(&w->block, blob->labels_id);
		return;
	}
	if (flags & NETTRACE_BLOB_ACTIVITY)
		outbuf_put(&w->block, blob->activity, sizeof(blob->activity));
	if (flags & NETTRACE_BLOB_RELATED)
		outbuf_put(&w->block, blob->related_activity, sizeof(blob->related_activity));
}

void nettrace_writer_event(struct nettrace_writer *w, const struct nettrace_blob *blob)
{
	struct outbuf *block = &w->block;

	/* Readers expect unsorted events of one thread in a block. */
	if (block->len > WRITER_BLOCK_BYTES || blob->capture_thread != w->last.capture_thread)
		nettrace_writer_flush(w);
	if (!block->len) {
		w->last = (struct nettrace_blob){0};
		w->first_ticks = w->last_ticks = blob->ticks;
		writer_begin_events(block, 0, 0); /* flush sets the times */
	}
	uint8_t flags = writer_changes(w, blob);

	ipc_put_u8(block, flags);
	if (flags & NETTRACE_BLOB_METADATA)
		nettrace_put_varuint(block, blob->metadata_id);
	if (flags & NETTRACE_BLOB_CAPTURE) {
		nettrace_put_varuint(block, (uint32_t)(blob->sequence - w->last.sequence - 1));
		nettrace_put_varuint(block, blob->capture_thread);
		nettrace_put_varuint(block, blob->processor);
	}
	if (flags & NETTRACE_BLOB_THREAD)
		nettrace_put_varuint(block, blob->thread);
	if (flags & NETTRACE_BLOB_STACK)
		nettrace_put_varuint(block, blob->stack_id);
	nettrace_put_varuint(block, blob->ticks - w->last.ticks);
	writer_activities(w, blob, flags);
	if (flags & NETTRACE_BLOB_PAYLOAD)
		nettrace_put_varuint(block, blob->payload_len);
	outbuf_put(block, blob->payload, blob->payload_len);
	w->first_ticks = blob->ticks < w->first_ticks ? blob->ticks : w->first_ticks;
	w->last_ticks = blob->ticks > w->last_ticks ? blob->ticks : w->last_ticks;
	w->last = *blob;
}

void nettrace_writer_flush(struct nettrace_writer *w)
{
	if (!w->block.len)
		return;
	if (!w->block.error) {
		memcpy(w->block.data + 4, &w->first_ticks, sizeof(w->first_ticks));
		memcpy(w->block.data + 12, &w->last_ticks, sizeof(w->last_ticks));
	}
	writer_block(w, "EventBlock", NETTRACE_V6_EVENTS, &w->block);
}

void nettrace_writer_end(struct nettrace_writer *w)
{
	nettrace_writer_flush(w);
	if (w->version == 6)
		ipc_put_u32(w->out, 0);
	else
		ipc_put_u8(w->out, NETTRACE_TAG_NULL);
	outbuf_close(&w->block);
}
