/* Writes nettrace streams of version 4, valid ones as runtimes do and invalid ones. */
#ifndef TESTS_UNIT_NETTRACE_WRITER_H
#define TESTS_UNIT_NETTRACE_WRITER_H

#include "dotnet/eventpipe/ipc.h"
#include "dotnet/eventpipe/nettrace.h"

#include <stdlib.h>
#include <string.h>

static inline void nt_u16(struct outbuf *out, uint16_t x)
{
	ipc_put_u8(out, (uint8_t)x);
	ipc_put_u8(out, (uint8_t)(x >> 8));
}

static inline void nt_varuint(struct outbuf *out, uint64_t x)
{
	for (; x >= 0x80; x >>= 7)
		ipc_put_u8(out, (uint8_t)(x | 0x80));
	ipc_put_u8(out, (uint8_t)x);
}

/* A NUL-terminated UTF-16 text of ASCII. */
static inline void nt_text(struct outbuf *out, const char *text)
{
	for (; *text; text++)
		nt_u16(out, (unsigned char)*text);
	nt_u16(out, 0);
}

static inline void nt_head(struct outbuf *out)
{
	outbuf_put(out, "Nettrace\x14\0\0\0!FastSerialization.1", 32);
}

static inline void nt_object(struct outbuf *out, const char *type, uint32_t version)
{
	ipc_put_u8(out, 5);
	ipc_put_u8(out, 5);
	ipc_put_u8(out, 1);
	ipc_put_u32(out, version);
	ipc_put_u32(out, version);
	ipc_put_u32(out, (uint32_t)strlen(type));
	outbuf_str(out, type);
	ipc_put_u8(out, 6);
}

static inline void nt_trace_version(struct outbuf *out, uint64_t ticks_per_second, uint32_t version)
{
	nt_object(out, "Trace", version);
	for (int i = 0; i < 8; i++)
		nt_u16(out, (uint16_t)(2026 - i));
	ipc_put_u64(out, 5000);
	ipc_put_u64(out, ticks_per_second);
	ipc_put_u32(out, 8);
	ipc_put_u32(out, 42);
	ipc_put_u32(out, 2);
	ipc_put_u32(out, 1000000);
	ipc_put_u8(out, 6);
}

static inline void nt_trace(struct outbuf *out, uint64_t ticks_per_second)
{
	nt_trace_version(out, ticks_per_second, 4);
}

/* Takes and frees block's bytes. */
static inline void nt_block(struct outbuf *out, const char *type, struct outbuf *block)
{
	nt_object(out, type, 2);
	ipc_put_u32(out, (uint32_t)block->len);
	while (out->len % 4)
		ipc_put_u8(out, 0);
	outbuf_put(out, block->data, block->len);
	ipc_put_u8(out, 6);
	outbuf_close(block);
}

static inline struct outbuf nt_events(bool compressed)
{
	struct outbuf b = outbuf_to(-1);

	nt_u16(&b, 20);
	nt_u16(&b, compressed);
	ipc_put_u64(&b, 0);
	ipc_put_u64(&b, UINT64_MAX);
	return b;
}

/* An event with a complete header. last_ticks and last_sequence belong to the previous event of the
 * block (first 0). */
static inline void nt_compressed(struct outbuf *b, const struct nettrace_blob *e,
				 uint64_t last_ticks, uint32_t last_sequence)
{
	ipc_put_u8(b, 0xbf | (e->sorted ? 0x40 : 0));
	nt_varuint(b, e->metadata_id);
	nt_varuint(b, (uint32_t)(e->sequence - last_sequence - (e->metadata_id ? 1 : 0)));
	nt_varuint(b, e->capture_thread);
	nt_varuint(b, e->processor);
	nt_varuint(b, e->thread);
	nt_varuint(b, e->stack_id);
	nt_varuint(b, e->ticks - last_ticks);
	outbuf_put(b, e->activity, 16);
	outbuf_put(b, e->related_activity, 16);
	nt_varuint(b, e->payload_len);
	outbuf_put(b, e->payload, e->payload_len);
}

static inline void nt_plain(struct outbuf *b, const struct nettrace_blob *e)
{
	ipc_put_u32(b, 76 + e->payload_len);
	ipc_put_u32(b, e->metadata_id | (e->sorted ? 1u << 31 : 0));
	ipc_put_u32(b, e->sequence);
	ipc_put_u64(b, e->thread);
	ipc_put_u64(b, e->capture_thread);
	ipc_put_u32(b, e->processor);
	ipc_put_u32(b, e->stack_id);
	ipc_put_u64(b, e->ticks);
	outbuf_put(b, e->activity, 16);
	outbuf_put(b, e->related_activity, 16);
	ipc_put_u32(b, e->payload_len);
	outbuf_put(b, e->payload, e->payload_len);
	while (b->len % 4)
		ipc_put_u8(b, 0);
}

/* A metadata block of one kind of event without fields. */
static inline void nt_kind(struct outbuf *out, uint32_t id, const char *provider, uint32_t event_id,
			   const char *name, uint32_t version)
{
	struct outbuf b = nt_events(true), payload = outbuf_to(-1);
	struct nettrace_blob e = {0};

	ipc_put_u32(&payload, id);
	nt_text(&payload, provider);
	ipc_put_u32(&payload, event_id);
	nt_text(&payload, name);
	ipc_put_u64(&payload, 0x10);
	ipc_put_u32(&payload, version);
	ipc_put_u32(&payload, 5);
	ipc_put_u32(&payload, 0);
	e.payload = (const unsigned char *)payload.data;
	e.payload_len = (uint32_t)payload.len;
	/* Runtimes set the sequence bit with a step of -1. */
	nt_compressed(&b, &e, 0, 1);
	outbuf_close(&payload);
	nt_block(out, "MetadataBlock", &b);
}

static inline void nt_end(struct outbuf *out)
{
	ipc_put_u8(out, 1);
}

#endif
