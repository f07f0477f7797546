/*
 * Parser of a nettrace stream: versions 3 (netperf) to 6. Takes bytes as they arrive and passes on
 * events. Keeps one block, the kinds of events, the threads of version 6, the stacks and labels
 * since the last sequence point, and one counter per thread. Each of them has a limit.
 */
#ifndef DOTNET_EVENTPIPE_NETTRACE_H
#define DOTNET_EVENTPIPE_NETTRACE_H

#include "base/share.h"
#include "dotnet/eventpipe/nettrace_blob.h"

#define NETTRACE_BLOCK_MAX ((size_t)16 << 20) /* bytes; runtimes write about 100 KB at most */
#define NETTRACE_KINDS_MAX 65536
#define NETTRACE_KIND_TEXT_MAX ((size_t)16 << 20) /* bytes of all names, and of all fields */
#define NETTRACE_STACKS_MAX ((size_t)64 << 20)    /* bytes of stacks between two sequence points */
/* Threads. Losses of further ones are not counted. In version 6 a further one is an error. */
#define NETTRACE_THREADS_MAX 65536

struct nettrace_trace {
	unsigned version;                      /* of the format: 3, 4, 5 or 6 */
	uint64_t sync_ticks, ticks_per_second; /* ticks are CLOCK_MONOTONIC on Linux */
	uint32_t pointer_bytes;
	/* pid: in the target's PID namespace. 6: 0 if unknown, or if it has several processes. */
	uint32_t pid, cpus, sampling_ns;
	/* Time of sync_ticks: year, month, weekday, day, hour, minute, second, ms. */
	uint16_t utc[8];
};

/* A time of the trace's clock in ns. */
uint64_t nettrace_ns(const struct nettrace_trace *trace, uint64_t ticks);

struct nettrace_event {
	const struct nettrace_kind *kind;
	uint64_t time_ns;          /* CLOCK_MONOTONIC */
	struct nettrace_blob blob; /* all of it is valid only during the call */
	/* Thread that the event is about, its process, and the thread that wrote it; ids. */
	uint64_t thread, pid, capture_thread;
	/* Addresses of pointer_bytes each, innermost first. NULL: none. */
	const unsigned char *stack;
	size_t stack_bytes;
	/* Labels of version 6, for nettrace_label_next. NULL: none. */
	const unsigned char *labels;
	size_t labels_bytes;
};

/* A label of an event: further ids, or what an application adds. */
struct nettrace_label {
	enum nettrace_label_kind {
		NETTRACE_LABEL_ACTIVITY = 1, /* bytes: 16 */
		NETTRACE_LABEL_RELATED_ACTIVITY = 2,
		NETTRACE_LABEL_TRACE_ID = 3,
		NETTRACE_LABEL_SPAN_ID = 4,
		NETTRACE_LABEL_TEXT = 5,   /* text of key and value */
		NETTRACE_LABEL_NUMBER = 6, /* key, and number */
		/* These four replace what the kind says. */
		NETTRACE_LABEL_OPCODE = 7,
		NETTRACE_LABEL_KEYWORDS = 8,
		NETTRACE_LABEL_LEVEL = 9,
		NETTRACE_LABEL_VERSION = 10,
	} kind;
	const char *key, *text; /* UTF-8, not terminated */
	size_t key_len, text_len;
	const unsigned char *bytes;
	uint64_t number; /* NETTRACE_LABEL_NUMBER: as int64_t */
};

/*
 * Reads the next label of a list. 1: *ret_label is set; 0: the list ends, or its rest is damaged.
 */
int nettrace_label_next(struct reader *list, struct nettrace_label *ret_label);

/* A result other than 0 ends the reading; nettrace_feed returns it. */
struct nettrace_listener {
	int (*trace)(void *ctx, const struct nettrace_trace *trace); /* may be NULL */
	int (*event)(void *ctx, const struct nettrace_event *event);
	void *ctx;
	struct share *memory; /* borrowed: counts what is kept; NULL: only the limits above */
};

struct nettrace_stats {
	uint64_t events, bytes;
	uint64_t lost; /* events dropped by the runtime, from gaps in the threads' counters */
	/* Skipped: events of undescribed kinds, and objects or blocks of unknown types. */
	uint64_t unknown;
};

struct nettrace;

int nettrace_new(const struct nettrace_listener *listener,
		 struct nettrace **ret_trace); /* 0, -ENOMEM */
void nettrace_free(struct nettrace *n);

/*
 * Takes the next bytes of the stream. 0; -EBADMSG: not nettrace, another version, or damaged;
 * -E2BIG: over a limit above; -ENOMEM; the listener's result. After an error it takes no more bytes
 * and returns the same error.
 */
int nettrace_feed(struct nettrace *n, const void *data, size_t len, struct parse_error *err);

/* Whether the end of the stream was read. Otherwise the stream was cut off. */
bool nettrace_ended(const struct nettrace *n);

/*
 * Bytes up to the end of the last whole object of the stream (6: block), without the end of the
 * stream. A stream that is cut there lacks only its end.
 */
uint64_t nettrace_whole(const struct nettrace *n);

/* The largest metadata_id of a kind that the stream has described; 0: none. */
uint32_t nettrace_last_kind_id(const struct nettrace *n);

struct nettrace_stats nettrace_stats(const struct nettrace *n);

#endif
