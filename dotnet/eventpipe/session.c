#include "dotnet/eventpipe/session.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SESSION_FORMAT_NETTRACE 1
#define SESSION_READ_BYTES ((size_t)256 << 10)
/* Last bytes read from a session that cannot be stopped; more than a socket holds. */
#define SESSION_REST_BYTES ((size_t)16 << 20)
#define SESSION_TYPE_STREAM 0
#define SESSION_BUFFER_DROPS 0
#define SESSION_BUFFER_WAITS 1

struct session {
	const struct port *port;
	int fd, stop_fd; /* stop_fd stays open, so that the runtime can reply */
	uint64_t id;
	enum ipc_command command; /* that began it */
	struct nettrace *trace;
	struct session_copy copy;
	struct parse_error damage;
	uint64_t received;
	bool at_end, has_more;
	struct share *memory; /* of the listener */
	uint64_t counted;     /* bytes in it */
	unsigned char buf[SESSION_READ_BYTES];
};

static int session_fail(struct port_error *err, int code, const char *what)
{
	*err = (struct port_error){.code = code, .what = what};
	return code;
}

/* Whether the runtime sends only the listed events. */
static bool session_lists_events(enum ipc_command command)
{
	return command >= IPC_COLLECT_TRACING5;
}

static void session_put_provider(struct outbuf *o, const struct session_provider *p,
				 enum ipc_command command)
{
	bool all = !session_lists_events(command) && p->all_keywords;

	ipc_put_u64(o, all ? p->all_keywords : p->keywords);
	ipc_put_u32(o, all ? p->all_level : p->level);
	ipc_put_text(o, p->name);
	ipc_put_text(o, p->arguments ? p->arguments : "");
	if (!session_lists_events(command))
		return;
	ipc_put_u8(o, p->ids != NULL);
	ipc_put_u32(o, p->nids);
	for (uint32_t i = 0; i < p->nids; i++)
		ipc_put_u32(o, p->ids[i]);
}

static void session_put_request(struct outbuf *o, const struct session_request *request,
				enum ipc_command command)
{
	if (command >= IPC_COLLECT_TRACING5)
		ipc_put_u32(o, SESSION_TYPE_STREAM);
	ipc_put_u32(o, request->buffer_mb);
	ipc_put_u32(o, SESSION_FORMAT_NETTRACE);
	if (command >= IPC_COLLECT_TRACING4)
		ipc_put_u64(o, request->rundown);
	else if (command >= IPC_COLLECT_TRACING2)
		ipc_put_u8(o, request->rundown != 0);
	if (command >= IPC_COLLECT_TRACING3)
		ipc_put_u8(o, request->stacks);
	ipc_put_u32(o, (uint32_t)request->nproviders);
	for (size_t i = 0; i < request->nproviders; i++)
		session_put_provider(o, &request->providers[i], command);
	if (command >= IPC_COLLECT_TRACING6)
		ipc_put_u32(o, request->waits ? SESSION_BUFFER_WAITS : SESSION_BUFFER_DROPS);
}

static int session_open(struct session *s, const struct session_request *request,
			enum ipc_command command, uint64_t deadline_ns, struct port_error *err)
{
	struct outbuf payload = outbuf_to(-1);
	AUTO_FREE void *answer = NULL;
	AUTO_CLOSE int fd = -1;
	size_t len = 0;

	session_put_request(&payload, request, command);
	int r = payload.error ? session_fail(err, payload.error, "cannot create a session")
			      : port_connect(s->port, deadline_ns, &fd, err);

	if (!r)
		r = port_request(fd, command, payload.data, payload.len, deadline_ns, &answer, &len,
				 err);
	outbuf_close(&payload);
	if (r)
		return r;
	struct reader id = reader_of(answer, len);

	s->id = reader_u64(&id);
	if (id.failed)
		return session_fail(err, -EBADMSG, "its reply lacks the id of the session");
	s->command = command;
	s->fd = TAKE_FD(fd);
	return 0;
}

/* Tries the commands from the newest to the oldest one that can express the request. */
static int session_open_newest(struct session *s, const struct session_request *request,
			       uint64_t deadline_ns, struct port_error *err)
{
	static const enum ipc_command newest_first[] = {IPC_COLLECT_TRACING6, IPC_COLLECT_TRACING5,
							IPC_COLLECT_TRACING4, IPC_COLLECT_TRACING3,
							IPC_COLLECT_TRACING2, IPC_COLLECT_TRACING};
	enum ipc_command oldest = request->rundown_exact ? IPC_COLLECT_TRACING4
				  : request->rundown     ? IPC_COLLECT_TRACING
							 : IPC_COLLECT_TRACING2;
	int r = -ENOTSUP;

	/* The newest one differs only in one wish. Without it, do not ask in vain. */
	for (size_t i = request->waits ? 0 : 1;
	     i < sizeof(newest_first) / sizeof(newest_first[0]) && newest_first[i] >= oldest &&
	     r == -ENOTSUP;
	     i++)
		r = session_open(s, request, newest_first[i], deadline_ns, err);
	return r;
}

int session_begin(const struct port *p, const struct session_request *request,
		  const struct nettrace_listener *listener, const struct session_copy *copy,
		  uint64_t deadline_ns, struct session **ret_session, struct port_error *err)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return session_fail(err, -ENOMEM, "cannot create a session");
	s->port = p;
	s->fd = s->stop_fd = -1;
	s->memory = listener->memory;
	if (copy)
		s->copy = *copy;
	if (share_count(s->memory, &s->counted, sizeof(*s))) {
		session_free(s);
		return session_fail(err, -ENOMEM, "too little memory is left for its events");
	}
	if (nettrace_new(listener, &s->trace)) {
		session_free(s);
		return session_fail(err, -ENOMEM, "cannot create a session");
	}
	int r = session_open_newest(s, request, deadline_ns, err);

	if (r) {
		session_free(s);
		return r;
	}
	*ret_session = s;
	return 0;
}

int session_fd(const struct session *s)
{
	return s->fd;
}

bool session_takes_ids(const struct session *s)
{
	return session_lists_events(s->command);
}

struct nettrace_stats session_stats(const struct session *s)
{
	return nettrace_stats(s->trace);
}

bool session_is_whole(const struct session *s)
{
	return nettrace_ended(s->trace);
}

uint64_t session_received(const struct session *s)
{
	return s->received;
}

struct parse_error session_damage(const struct session *s)
{
	return s->damage;
}

uint32_t session_last_kind_id(const struct session *s)
{
	return nettrace_last_kind_id(s->trace);
}

uint64_t session_whole_bytes(const struct session *s)
{
	return nettrace_whole(s->trace);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	cleanup_close(&s->fd);
	cleanup_close(&s->stop_fd);
	share_release(s->memory, &s->counted);
	nettrace_free(s->trace);
	free(s);
}

/* Takes bytes of the stream. 0; the results of the copy, of the listener and of nettrace_feed. */
static int session_take(struct session *s, size_t len, struct port_error *err)
{
	struct parse_error bad = {.what = "its events cannot be kept"};
	s->received += len;
	int r = s->copy.take ? s->copy.take(s->copy.ctx, s->buf, len) : 0;

	if (r)
		return session_fail(err, r, "its events cannot be kept");
	if (s->damage.code)
		return 0;
	r = nettrace_feed(s->trace, s->buf, len, &bad);
	if (s->copy.take && (r == -EBADMSG || r == -E2BIG)) {
		s->damage = bad;
		return 0;
	}
	return r ? session_fail(err, r, bad.what) : 0;
}

int session_read(struct session *s, size_t max_bytes, struct port_error *err)
{
	s->has_more = false;
	for (size_t got = 0; got < max_bytes && !s->at_end;) {
		ssize_t n = recv(s->fd, s->buf, sizeof(s->buf), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			s->at_end = true;
			break;
		}
		int r = session_take(s, (size_t)n, err);

		if (r)
			return r;
		got += (size_t)n;
		s->at_end = nettrace_ended(s->trace);
		s->has_more = got >= max_bytes && !s->at_end;
	}
	return s->at_end ? session_fail(err, -ENODATA, "its events have ended") : 0;
}

bool session_has_more(const struct session *s)
{
	return s->has_more;
}

/* Reads until the stream ends. The reply to the stop command comes later and is ignored. */
static int session_drain(struct session *s, uint64_t deadline_ns, struct port_error *err)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	int r;

	while (!(r = session_read(s, SESSION_READ_BYTES, err))) {
		uint64_t now = clock_monotonic_ns();
		uint64_t left_ms = now < deadline_ns ? (deadline_ns - now) / NS_PER_MS + 1 : 0;

		if (!left_ms)
			return session_fail(err, -ETIMEDOUT, "its events do not end");
		if (poll(&p, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms) < 0 && errno != EINTR)
			return session_fail(err, -errno, "cannot wait for its events");
	}
	if (r != -ENODATA)
		return r;
	return nettrace_ended(s->trace) || s->damage.code
		       ? 0
		       : session_fail(err, -EBADMSG, "its events were cut off");
}

int session_request_stop(struct session *s, uint64_t deadline_ns, struct port_error *err)
{
	struct outbuf message = outbuf_to(-1), payload = outbuf_to(-1);

	if (s->at_end || s->stop_fd >= 0)
		return 0;
	int r = port_connect(s->port, deadline_ns, &s->stop_fd, err);

	/* Send exactly 8 bytes: the runtime does not check the length. */
	ipc_put_u64(&payload, s->id);
	if (!r) {
		r = ipc_request(&message, IPC_STOP_TRACING, payload.data, payload.len);
		if (!r)
			r = port_send(s->stop_fd, message.data, message.len, deadline_ns);
		if (r)
			session_fail(err, r, "the session cannot be stopped");
	}
	if (r) {
		cleanup_close(&s->stop_fd);
		s->stop_fd = -1;
	}
	outbuf_close(&message);
	outbuf_close(&payload);
	return r;
}

int session_stop(struct session *s, uint64_t deadline_ns, struct port_error *err)
{
	int r = session_request_stop(s, deadline_ns, err);

	if (!r)
		return session_drain(s, deadline_ns, err);
	/* Read the events already received, even if the process has ended. */
	struct port_error read_err;

	(void)session_read(s, SESSION_REST_BYTES, &read_err);
	return r;
}
