/*
 * A session of runtime events. Begins with the newest command that the runtime knows. Stopping
 * reads events until the end, because the runtime replies to the stop only after all events were
 * read. No session is left behind. If profcpu is killed, its session ends with the runtime's next
 * event.
 */
#ifndef DOTNET_EVENTPIPE_SESSION_H
#define DOTNET_EVENTPIPE_SESSION_H

#include "dotnet/eventpipe/nettrace.h"
#include "dotnet/eventpipe/port.h"

/* Providers of the runtime itself. */
#define PROVIDER_RUNTIME "Microsoft-Windows-DotNETRuntime"
#define PROVIDER_PRIVATE "Microsoft-Windows-DotNETRuntimePrivate"
#define PROVIDER_RUNDOWN "Microsoft-Windows-DotNETRuntimeRundown"
#define PROVIDER_SAMPLER "Microsoft-DotNETCore-SampleProfiler"

struct session_provider {
	const char *name;
	const char *arguments; /* "KEY=VALUE;KEY=VALUE"; NULL: none */
	uint64_t keywords;
	uint32_t level; /* 0 to 5 */
	/* Only these events, if the runtime supports it (.NET 10). NULL: all. */
	const uint32_t *ids;
	uint32_t nids;
	/* For runtimes that ignore ids: keywords and level to use instead. 0: the same. */
	uint64_t all_keywords;
	uint32_t all_level;
};

struct session_request {
	const struct session_provider *providers;
	size_t nproviders; /* at least 1, because runtimes refuse 0 */
	bool stacks;       /* events have stacks. Before .NET 8 they always do. */
	/*
	 * Keywords of the rundown at the end; 0: no rundown. Before .NET 9 all keywords apply, IL
	 * maps included.
	 */
	uint64_t rundown;
	bool rundown_exact; /* fail if not only these keywords apply */
	uint32_t buffer_mb; /* limit of the runtime's buffer, in MB */
	/* Threads wait while that buffer is full, and drop no events. Before .NET 11 they drop. */
	bool waits;
};

/*
 * Takes the bytes of the stream as they come, before they are parsed. A result other than 0 ends
 * the reading, and is returned. If take is NULL, a damaged stream is an error. Otherwise it is read
 * to its end, and session_damage tells of the damage.
 */
struct session_copy {
	int (*take)(void *ctx, const void *data, size_t len);
	void *ctx;
};

struct session;

/*
 * Begins a session. p is borrowed while the session exists. listener: as for nettrace_new. The
 * functions below call it and copy, which may be NULL.
 *
 * 0; errors of port_connect and port_request; -ENOTSUP: also for rundown_exact before .NET 9;
 * -E2BIG: the providers do not fit into a message.
 */
int session_begin(const struct port *p, const struct session_request *request,
		  const struct nettrace_listener *listener, const struct session_copy *copy,
		  uint64_t deadline_ns, struct session **ret_session, struct port_error *err);

/* Whether the runtime sends only the listed events of a provider. */
bool session_takes_ids(const struct session *s);

/* For poll: readable when events wait. */
int session_fd(const struct session *s);

/*
 * Reads waiting events, about max_bytes at most, without blocking. 0; -ENODATA: the stream has
 * ended, because the target ended; -EBADMSG, -E2BIG: damaged; the listener's result.
 */
int session_read(struct session *s, size_t max_bytes, struct port_error *err);

/* Whether the last session_read stopped at max_bytes, so more events may wait. */
bool session_has_more(const struct session *s);

/*
 * Requests the end of the session. Read it then until -ENODATA. 0; -ETIMEDOUT; errors of
 * port_connect.
 */
int session_request_stop(struct session *s, uint64_t deadline_ns, struct port_error *err);

/*
 * Stops the session and reads to the end, with the rundown. Frees nothing. 0; -ETIMEDOUT; errors of
 * the above.
 */
int session_stop(struct session *s, uint64_t deadline_ns, struct port_error *err);

struct nettrace_stats session_stats(const struct session *s);

/* Whether the end of the stream was read. Otherwise it was cut off, or goes on. */
bool session_is_whole(const struct session *s);

/* Bytes received, also after damage. */
uint64_t session_received(const struct session *s);

/* The first damage of a stream that is copied; code 0: none. */
struct parse_error session_damage(const struct session *s);

/* As nettrace_last_kind_id. */
uint32_t session_last_kind_id(const struct session *s);

/* Bytes of the stream up to the end of its last whole object: see nettrace_whole. */
uint64_t session_whole_bytes(const struct session *s);

/* Frees a session; NULL is fine. If not stopped, the runtime ends it at its next event. */
void session_free(struct session *s);

#endif
