/* What is in the blocks of a nettrace stream: events, and descriptions of events. microsoft/perfview
 * src/TraceEvent/EventPipe/NetTraceFormat_v5.md; where runtimes do otherwise, what .NET 8 to 10 write. */
#ifndef EVENTPIPE_NETTRACE_BLOB_H
#define EVENTPIPE_NETTRACE_BLOB_H

#include "base/error.h"
#include "base/outbuf.h"
#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETTRACE_NAME_MAX 4096 /* UTF-16 units of a provider's or an event's name */

/* An event as it stands in its block. */
struct nettrace_blob {
	uint32_t metadata_id; /* 0 in a metadata block */
	uint32_t sequence; /* counts the events of the capturing thread */
	uint64_t capture_thread; /* who wrote it, and whom it is about; as the target's PID namespace numbers them */
	uint64_t thread;
	uint32_t processor;
	uint32_t stack_id; /* 0: none */
	uint64_t ticks;
	unsigned char activity[16], related_activity[16];
	bool sorted;
	const unsigned char *payload; /* in the block */
	uint32_t payload_len;
};

/* The blobs of one event or metadata block, one after the other. */
struct nettrace_blobs {
	struct reader r;
	bool compressed;
	struct nettrace_blob last; /* what a compressed header does not repeat */
};

/* Begins at the block's header. 0; -EBADMSG. data is borrowed. */
int nettrace_blobs_begin(struct nettrace_blobs *b, const void *data, size_t len);

/* 1: *ret_blob; 0: end; -EBADMSG, and b->r.fail_at tells where. */
int nettrace_blobs_next(struct nettrace_blobs *b, struct nettrace_blob *ret_blob);

/* One kind of event. Names are UTF-8; those of the runtime's own providers are empty. */
struct nettrace_kind {
	const char *provider, *name;
	uint32_t metadata_id, event_id, version, level;
	uint64_t keywords;
};

/* A metadata event's payload up to its fields. The names are appended to text, each with its NUL, and the pointers of *ret_kind are not
 * set: the provider's name begins at *ret_provider in text->data, the event's at *ret_name. 0; -EBADMSG; -E2BIG; -ENOMEM. */
int nettrace_kind_parse(const void *payload, size_t len, struct outbuf *text, struct nettrace_kind *ret_kind, size_t *ret_provider,
			size_t *ret_name);

/* A NUL-terminated UTF-16 text of at most max_units: its units in place, their number without the NUL. NULL where no NUL is there; then
 * the reader has failed. */
const void *nettrace_utf16(struct reader *r, size_t max_units, size_t *ret_units);

#endif
