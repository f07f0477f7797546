/*
 * Parser of a nettrace stream (version 4, .NET Core 3.0 to 10). Takes bytes as they arrive and
 * passes on events. Keeps one block, the kinds of events, the stacks since the last sequence point,
 * and one counter per thread. Each of them has a limit.
 */
#ifndef DOTNET_EVENTPIPE_NETTRACE_H
#define DOTNET_EVENTPIPE_NETTRACE_H

#include "base/share.h"
#include "dotnet/eventpipe/nettrace_blob.h"

#define NETTRACE_BLOCK_MAX ((size_t)8 << 20) /* bytes; runtimes write about 100 KB at most */
#define NETTRACE_KINDS_MAX 65536
#define NETTRACE_KIND_TEXT_MAX ((size_t)16 << 20) /* bytes of all names */
#define NETTRACE_STACKS_MAX ((size_t)64 << 20)    /* bytes of stacks between two sequence points */
#define NETTRACE_THREADS_MAX 65536                /* losses of further threads are not counted */

struct nettrace_trace {
	uint64_t sync_ticks, ticks_per_second;          /* ticks are CLOCK_MONOTONIC on Linux */
	uint32_t pointer_bytes, pid, cpus, sampling_ns; /* pid: in the target's PID namespace */
	/* Time of sync_ticks: year, month, weekday, day, hour, minute, second, ms. */
	uint16_t utc[8];
};

struct nettrace_event {
	const struct nettrace_kind *kind;
	uint64_t time_ns;          /* CLOCK_MONOTONIC */
	struct nettrace_blob blob; /* all of it is valid only during the call */
	/* Addresses of pointer_bytes each, innermost first. NULL: none. */
	const unsigned char *stack;
	size_t stack_bytes;
};

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
	/* Skipped: events of undescribed kinds, and objects of unknown types. */
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

struct nettrace_stats nettrace_stats(const struct nettrace *n);

#endif
