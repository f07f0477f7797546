/*
 * Writes nettrace streams of versions 4 and 6: whole ones, or what follows the last whole object of
 * a stream that a runtime wrote. Specification: as for nettrace_blob.h.
 *
 * Order: first nettrace_writer_head, except behind another stream; kinds, threads (6) and stacks
 * before the events that refer to them; nettrace_writer_end last.
 */
#ifndef DOTNET_EVENTPIPE_NETTRACE_WRITER_H
#define DOTNET_EVENTPIPE_NETTRACE_WRITER_H

#include "base/outbuf.h"
#include "dotnet/eventpipe/nettrace.h"

struct nettrace_writer {
	struct outbuf *out; /* borrowed; its error is the writer's */
	unsigned version;   /* 4 or 6 */
	uint64_t begin;     /* offset in the stream of the first byte of out */
	/* The rest is private. */
	struct outbuf block; /* events, not in out yet */
	struct nettrace_blob last;
	uint64_t first_ticks, last_ticks; /* of block */
};

/* begin: bytes of the stream before those that go to out; 0: a new stream. */
struct nettrace_writer nettrace_writer_to(struct outbuf *out, unsigned version, uint64_t begin);

/* Begins a new stream. Uses all of trace but its version. */
void nettrace_writer_head(struct nettrace_writer *w, const struct nettrace_trace *trace);

/*
 * Describes a kind of event, with those of its fields that the version can express; without fields
 * if it cannot express one. Does not use kind->number.
 */
void nettrace_writer_kind(struct nettrace_writer *w, const struct nettrace_kind *kind);

/* 6: describes a thread, to which events refer by its index. 4: does nothing. */
void nettrace_writer_thread(struct nettrace_writer *w, uint64_t index, uint64_t pid,
			    uint64_t thread);

/* Writes the stack with this id, which is not 0. */
void nettrace_writer_stack(struct nettrace_writer *w, uint32_t id, const void *addresses,
			   size_t bytes);

/*
 * Writes an event: all fields of blob except sorted, stack and stack_len, and labels_id (4) or the
 * activities (6). The first event of a capturing thread has the sequence 1, each next one is 1
 * higher; a gap means lost events.
 */
void nettrace_writer_event(struct nettrace_writer *w, const struct nettrace_blob *blob);

/* Moves all events to out. */
void nettrace_writer_flush(struct nettrace_writer *w);

/* Writes the end of the stream, and frees the block. The writer is unusable then. */
void nettrace_writer_end(struct nettrace_writer *w);

#endif
