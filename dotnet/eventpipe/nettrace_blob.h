/*
 * Parser of the blocks of a nettrace stream: events, and descriptions of events. Specification:
 * microsoft/perfview, src/TraceEvent/EventPipe/NetTraceFormat_v5.md. Where .NET 8 to 10 differ from
 * it, this follows the runtimes.
 */
#ifndef DOTNET_EVENTPIPE_NETTRACE_BLOB_H
#define DOTNET_EVENTPIPE_NETTRACE_BLOB_H

#include "base/error.h"
#include "base/outbuf.h"
#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETTRACE_NAME_MAX 4096 /* UTF-16 units of a provider's or event's name */

/* An event as stored in its block. */
struct nettrace_blob {
	uint32_t metadata_id; /* 0 in a metadata block */
	uint32_t sequence;    /* number of this event among those of the capturing thread */
	/*
	 * Thread that wrote the event, and the thread it is about. Ids of the target's PID
	 * namespace.
	 */
	uint64_t capture_thread;
	uint64_t thread;
	uint32_t processor;
	uint32_t stack_id; /* 0: none */
	uint64_t ticks;
	unsigned char activity[16], related_activity[16];
	bool sorted;
	const unsigned char *payload; /* in the block */
	uint32_t payload_len;
};

/* Iterator over the blobs of an event or metadata block. */
struct nettrace_blobs {
	struct reader r;
	bool compressed;
	struct nettrace_blob last; /* compressed headers omit fields equal to these */
};

/* Begins at the block's header; data is borrowed. 0; -EBADMSG. */
int nettrace_blobs_begin(struct nettrace_blobs *b, const void *data, size_t len);

/* 1: *ret_blob is set; 0: end; -EBADMSG: damaged at b->r.fail_at. */
int nettrace_blobs_next(struct nettrace_blobs *b, struct nettrace_blob *ret_blob);

/* A kind of event. Names are UTF-8. The runtime's own providers have empty event names. */
struct nettrace_kind {
	const char *provider, *name;
	uint32_t metadata_id, event_id, version, level;
	uint64_t keywords;
};

/*
 * Parses the payload of a metadata event, up to the description of fields. Appends both names to
 * text, each with a NUL, and leaves the pointers of *ret_kind unset. *ret_provider and *ret_name:
 * offsets of the names in text->data. 0; -EBADMSG; -E2BIG; -ENOMEM.
 */
int nettrace_kind_parse(const void *payload, size_t len, struct outbuf *text,
			struct nettrace_kind *ret_kind, size_t *ret_provider, size_t *ret_name);

/*
 * Reads a NUL-terminated UTF-16 text of at most max_units. Gives its units in place, and their
 * number without the NUL. NULL: no NUL found; the reader has failed.
 */
const void *nettrace_utf16(struct reader *r, size_t max_units, size_t *ret_units);

#endif
