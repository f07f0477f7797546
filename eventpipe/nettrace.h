/*
 * A nettrace stream (version 4, .NET Core 3.0 to 10) as it comes out of a session: bytes go in as they arrive, events come out. What is
 * kept is bounded: one block, the kinds of events, the stacks since the last sequence point, one counter a thread.
 */
#ifndef EVENTPIPE_NETTRACE_H
#define EVENTPIPE_NETTRACE_H

#include "eventpipe/nettrace_blob.h"

#define NETTRACE_BLOCK_MAX ((size_t)64 << 20) /* runtimes write about 100 KB at most */
#define NETTRACE_KINDS_MAX 65536
#define NETTRACE_KIND_TEXT_MAX ((size_t)16 << 20) /* bytes of their names together */
#define NETTRACE_STACKS_MAX ((size_t)64 << 20) /* bytes of stacks between two sequence points */
#define NETTRACE_THREADS_MAX 65536 /* further threads' losses are not counted */

struct nettrace_trace {
	uint64_t sync_ticks, ticks_per_second; /* ticks are of CLOCK_MONOTONIC on Linux */
	uint32_t pointer_bytes, pid, cpus, sampling_ns; /* pid: in the target's PID namespace */
	uint16_t utc[8]; /* of sync_ticks: year, month, weekday, day, hour, minute, second, ms */
};

struct nettrace_event {
	const struct nettrace_kind *kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct nettrace_blob blob; /* payload and all are valid during the call */
	const unsigned char *stack; /* addresses of pointer_bytes each, the innermost first; NULL: none */
	size_t stack_bytes;
};

/* What is not 0 ends the reading and is given back by nettrace_feed. */
struct nettrace_listener {
	int (*trace)(void *ctx, const struct nettrace_trace *trace); /* may be NULL */
	int (*event)(void *ctx, const struct nettrace_event *event);
	void *ctx;
};

struct nettrace_stats {
	uint64_t events, bytes;
	uint64_t lost; /* events that the runtime dropped, by gaps of threads' counters */
	uint64_t unknown; /* events whose kind was not described, and objects of unknown types: skipped */
};

struct nettrace;

int nettrace_new(const struct nettrace_listener *listener, struct nettrace **ret_trace); /* 0, -ENOMEM */
void nettrace_free(struct nettrace *n);

/* Takes the next bytes of the stream. 0; -EBADMSG: no nettrace, of another version, or damaged; -E2BIG; -ENOMEM; what a listener
 * gave. After an error nothing more is taken and the same error comes again. */
int nettrace_feed(struct nettrace *n, const void *data, size_t len, struct parse_error *err);

/* Whether the stream has come to its end: one that has not was cut. */
bool nettrace_ended(const struct nettrace *n);

struct nettrace_stats nettrace_stats(const struct nettrace *n);

#endif
