/*
 * Parser of the blocks of a nettrace stream: events, and descriptions of events. Specification:
 * microsoft/perfview, src/TraceEvent/EventPipe: NetPerfFormat.md (version 3), NetTraceFormat_v5.md
 * (4 and 5) and NetTraceFormat.md (6). Where .NET 8 to 10 differ from it, this follows the
 * runtimes.
 */
#ifndef DOTNET_EVENTPIPE_NETTRACE_BLOB_H
#define DOTNET_EVENTPIPE_NETTRACE_BLOB_H

#include "base/error.h"
#include "base/outbuf.h"
#include "base/reader.h"
#include "dotnet/eventpipe/event_fields.h"
#include "dotnet/eventpipe/nettrace_value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETTRACE_NAME_MAX 4096 /* UTF-16 units of a provider's or event's name */

/* An event as stored in its block. */
struct nettrace_blob {
	uint32_t metadata_id; /* 0 in a metadata block */
	uint32_t sequence;    /* number of this event among those of the capturing thread; 3: 0 */
	/*
	 * Thread that wrote the event, and the thread it is about. Ids of the target's PID
	 * namespace; 6: indexes of threads.
	 */
	uint64_t capture_thread;
	uint64_t thread;
	uint32_t processor; /* UINT32_MAX: unknown */
	uint32_t stack_id;  /* 0: none */
	uint64_t ticks;
	uint32_t labels_id; /* 6; 0: none */
	unsigned char activity[16], related_activity[16];
	bool sorted;
	const unsigned char *payload; /* in the block */
	uint32_t payload_len;
	const unsigned char *stack; /* 3: in the block; else stack_id is used */
	uint32_t stack_len;
};

/* Iterator over the blobs of an event or metadata block. */
struct nettrace_blobs {
	struct reader r;
	unsigned version; /* of the format: 3, 4 (also for 5) or 6 */
	bool compressed;
	struct nettrace_blob last; /* compressed headers omit fields equal to these */
};

/* Begins at the block's header; data is borrowed. 0; -EBADMSG. */
int nettrace_blobs_begin(struct nettrace_blobs *b, const void *data, size_t len, unsigned version);

/* 1: *ret_blob is set; 0: end; -EBADMSG: damaged at b->r.fail_at. */
int nettrace_blobs_next(struct nettrace_blobs *b, struct nettrace_blob *ret_blob);

/* A kind of event. Names are UTF-8. The runtime's own providers have empty event names. */
struct nettrace_kind {
	const char *provider, *name;
	uint32_t metadata_id, event_id, version, level, opcode;
	uint32_t number; /* of this kind among those of the stream, from 0; no other has it */
	uint64_t keywords;
	const struct event_field *fields; /* NULL: none are described */
	size_t nfields;                   /* including those in objects */
};

/*
 * Whether a user's word means this kind: its number, or its name in upper or lower case. A slash
 * does not count, so that names of TraceEvent such as GC/Start work if they differ in nothing else.
 */
bool nettrace_kind_is(const struct nettrace_kind *kind, const char *word);

/* A kind that is being read. Its texts are in text, one after another. */
struct nettrace_kind_parts {
	struct nettrace_kind kind; /* without its pointers */
	struct outbuf text;
	struct event_fields fields;
	size_t provider, name; /* offsets in text */
};

struct nettrace_kind_parts nettrace_kind_begin(void);
void nettrace_kind_end(struct nettrace_kind_parts *parts);

/*
 * Parse a description of a kind: the payload of a metadata event, or a row of version 6. A kind
 * whose fields have unknown types has none. 0; -EBADMSG; -ENOMEM.
 */
int nettrace_kind_parse(const void *payload, size_t len, struct nettrace_kind_parts *parts);
int nettrace_kind_parse_v6(const void *row, size_t len, struct nettrace_kind_parts *parts);

#endif
