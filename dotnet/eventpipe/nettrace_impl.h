/* Inside of dotnet/eventpipe/nettrace: what its parts share. */
#ifndef DOTNET_EVENTPIPE_NETTRACE_IMPL_H
#define DOTNET_EVENTPIPE_NETTRACE_IMPL_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/eventpipe/nettrace.h"

#include <limits.h>

/* Internal result: the buffer ends within an object. No listener returns this value. */
#define NETTRACE_MORE INT_MIN

struct nettrace_place {
	size_t at, bytes; /* in the bytes of a struct nettrace_rows */
};

/* Stacks, or lists of labels, by id: those since the last sequence point. */
struct nettrace_rows {
	VEC(unsigned char) bytes;
	VEC(struct nettrace_place) places;
	struct hashmap by_id; /* id -> index into places */
};

/* A thread of version 6. */
struct nettrace_thread {
	uint64_t index, thread, pid;
};

struct nettrace {
	struct nettrace_listener listener;
	VEC(unsigned char) in; /* bytes received, including those consumed */
	size_t taken;          /* bytes of it consumed */
	uint64_t stream_at;    /* offset of in.v[0] in the stream */
	bool begun, ended;
	size_t end_bytes; /* of what ended it */
	int error;
	struct parse_error why;
	struct nettrace_trace trace;
	struct arena text; /* names and fields of the kinds */
	VEC(struct nettrace_kind) kinds;
	uint32_t last_kind_id;
	uint32_t nkinds; /* with those that version 6 has removed */
	struct hashmap kind_by_id;
	struct nettrace_rows stacks, labels;
	VEC(struct nettrace_thread) threads;
	struct hashmap thread_by_index; /* index of version 6 -> index into threads */
	struct hashmap sequences;       /* last number of each capturing thread */
	struct nettrace_stats stats;
	uint64_t counted; /* bytes in listener.memory */
};

/* Notes an error at an offset from what was consumed. Returns code. */
int nettrace_fail(struct nettrace *n, int code, const char *what, size_t at);

/* Counts the memory that is kept. 0 or -ENOMEM. */
int nettrace_count_memory(struct nettrace *n);

/* Takes the head of the trace, without its version. 0; -EBADMSG; the listener's result. */
int nettrace_take_trace(struct nettrace *n, const struct nettrace_trace *trace);

/* Adds a kind that was parsed. error: the result of parsing. */
int nettrace_add_kind(struct nettrace *n, struct nettrace_kind_parts *parts, int error, size_t at);

/* Takes a block of events; metadata: of descriptions of kinds. */
int nettrace_take_blobs(struct nettrace *n, const unsigned char *body, size_t len, bool metadata);

/* Adds one stack or one list of labels. */
int nettrace_add_row(struct nettrace *n, struct nettrace_rows *rows, uint32_t id, const void *bytes,
		     size_t len, size_t at);

int nettrace_take_stacks(struct nettrace *n, const unsigned char *body, size_t len);

/*
 * Counts the events that a thread dropped before the one with this number, which it had reached at
 * a sequence point, or at its end.
 */
int nettrace_count_reached(struct nettrace *n, uint64_t thread, uint32_t sequence);

/* Forgets stacks and labels, at a sequence point. */
void nettrace_forget_rows(struct nettrace *n);

/* Take one object or block at the start of data. 0 and the bytes consumed; NETTRACE_MORE. */
int nettrace_object(struct nettrace *n, const unsigned char *data, size_t len, size_t *ret_used);
int nettrace_block_v6(struct nettrace *n, const unsigned char *data, size_t len, size_t *ret_used);

#endif
