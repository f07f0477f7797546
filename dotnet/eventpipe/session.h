/*
 * A session of runtime events. rundown.c chooses the providers and keywords. Begins with the newest
 * command that the runtime knows. Stopping reads events until the end, because the runtime replies
 * to the stop only after all events were read. No session is left behind. If profcpu is killed, its
 * session ends with the runtime's next event.
 */
#ifndef DOTNET_EVENTPIPE_SESSION_H
#define DOTNET_EVENTPIPE_SESSION_H

#include "dotnet/eventpipe/nettrace.h"
#include "dotnet/eventpipe/port.h"

#define SESSION_PROVIDERS_MAX 16
#define SESSION_IDS_MAX 64

struct session_provider {
	const char *name;
	uint64_t keywords;
	uint32_t level; /* 0 to 5 */
	/* Only these events, if the runtime supports it (.NET 10). NULL: all. */
	const uint32_t *ids;
	uint32_t nids;
};

struct session_request {
	const struct session_provider *providers;
	size_t nproviders; /* at least 1, because runtimes refuse 0 */
	/*
	 * Keywords of the rundown at the end; 0: no rundown. Before .NET 9 all keywords apply, IL
	 * maps included.
	 */
	uint64_t rundown;
	bool rundown_exact; /* fail if not only these keywords apply */
	uint32_t buffer_mb; /* limit of the runtime's buffer, in MB */
};

struct session;

/*
 * Begins a session. listener: as for nettrace_new; called by the functions below. 0; errors of
 * port_connect and port_request; -ENOTSUP: also for rundown_exact before .NET 9; -EINVAL: over the
 * limits above.
 */
int session_begin(struct opener *o, pid_t pid, const struct session_request *request,
		  const struct nettrace_listener *listener, uint64_t deadline_ns,
		  struct session **ret_session, struct port_error *err);

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
 * Stops the session and reads to the end, with the rundown. Frees nothing. 0; -ETIMEDOUT; errors of
 * the above.
 */
int session_stop(struct opener *o, struct session *s, uint64_t deadline_ns, struct port_error *err);

struct nettrace_stats session_stats(const struct session *s);

/* Frees a session; NULL is fine. If not stopped, the runtime ends it at its next event. */
void session_free(struct session *s);

#endif
