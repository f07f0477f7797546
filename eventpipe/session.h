/*
 * A session of events with a runtime: begun by the newest command that it knows, read while it is stopped (a runtime answers the stop
 * only when all it has to say was read), and never left behind by us. One that profcpu was killed over ends with the runtime's next event.
 */
#ifndef EVENTPIPE_SESSION_H
#define EVENTPIPE_SESSION_H

#include "eventpipe/nettrace.h"
#include "eventpipe/port.h"

#define SESSION_PROVIDERS_MAX 16
#define SESSION_IDS_MAX 64

struct session_provider {
	const char *name;
	uint64_t keywords;
	uint32_t level; /* 0 to 5 */
	/* Only these events, where the runtime can (.NET 10); NULL: all. */
	const uint32_t *ids;
	uint32_t nids;
};

struct session_request {
	const struct session_provider *providers;
	size_t nproviders; /* at least 1: runtimes refuse none */
	uint64_t rundown; /* keywords of the rundown at the end, before .NET 9 all of them, with IL maps; 0: none */
	uint32_t buffer_mb; /* what the runtime may use at most */
};

struct session;

/* 0; errors of port_connect and port_ask; -EINVAL over the limits above. listener: as for nettrace_new, called by the functions below. */
int session_begin(struct opener *o, pid_t pid, const struct session_request *request, const struct nettrace_listener *listener,
		  uint64_t deadline_ns, struct session **ret_session, struct port_error *err);

/* For poll: readable when there are events. */
int session_fd(const struct session *s);

/* Takes what there is, at most about max_bytes, without waiting. 0; -ENODATA: the stream is at its end (the target ended); -EBADMSG,
 * -E2BIG: it is damaged; what the listener gave. */
int session_read(struct session *s, size_t max_bytes, struct port_error *err);

/* Whether the last session_read ended at max_bytes: there may be more. */
bool session_has_more(const struct session *s);

/* Stops it, with its rundown, and reads to the end. 0; -ETIMEDOUT; errors of the above. Frees nothing. */
int session_stop(struct opener *o, struct session *s, uint64_t deadline_ns, struct port_error *err);

struct nettrace_stats session_stats(const struct session *s);

/* One that was not stopped ends with the runtime's next event. NULL is fine. */
void session_free(struct session *s);

#endif
