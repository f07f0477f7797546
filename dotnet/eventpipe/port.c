#include "dotnet/eventpipe/port.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/dotnet_process.h"
#include "container/proc.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PORT_RETRY_NS (5 * NS_PER_MS) /* while the runtime's queue of connections is full */

static int port_fail(struct port_error *err, int code, const char *what, uint32_t hresult)
{
	if (err)
		*err = (struct port_error){.code = code, .what = what, .hresult = hresult};
	return code;
}

void port_error_text(const struct port_error *e, char *buf, size_t cap)
{
	switch (e->code) {
	case -ETIMEDOUT:
		snprintf(buf, cap, "the runtime did not answer in time (%s)", e->what);
		break;
	case -ENOTSUP:
	case -EREMOTEIO:
		snprintf(buf, cap, "the runtime answered: %s (0x%08x; %s)",
			 ipc_hresult_text(e->hresult), e->hresult, e->what);
		break;
	case -ENOENT:
		snprintf(buf, cap,
			 "the process has no diagnostic port (DOTNET_EnableDiagnostics=0 switches "
			 "it off)");
		break;
	case -ECANCELED:
		snprintf(buf, cap, "the command was interrupted (%s)", e->what);
		break;
	case -EBADMSG:
		snprintf(buf, cap, "its diagnostic port gave an invalid reply: %s", e->what);
		break;
	default:
		snprintf(buf, cap, "%s: %s", e->what, strerror(-e->code));
	}
}

static int port_cancel_fd = -1;

void port_cancel_on(int fd)
{
	port_cancel_fd = fd;
}

/* Waits until fd is ready for events. 0, -ETIMEDOUT, -ECANCELED, -errno. */
static int port_wait(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p[] = {{.fd = fd, .events = events},
			     {.fd = port_cancel_fd, .events = POLLIN}};

	for (;;) {
		uint64_t now = clock_monotonic_ns();

		if (now >= deadline_ns)
			return -ETIMEDOUT;
		uint64_t left_ms = (deadline_ns - now) / NS_PER_MS + 1;
		int n = poll(p, 2, left_ms > INT_MAX ? INT_MAX : (int)left_ms);

		if (n > 0)
			return p[1].revents ? -ECANCELED : 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static const char port_unreachable[] = "its diagnostic port cannot be reached";

/* Connects to a socket by its path. 0; -EAGAIN: its queue is full; -errno. */
static int port_connect_path(const char *path, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		struct stat st;
		int r = -errno;

		return r == -ECONNREFUSED && !stat(path, &st) && !S_ISSOCK(st.st_mode) ? -ENOTSOCK
										       : r;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Whether this program may use sockets of all users. */
static bool port_overrides(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};

	return !syscall(SYS_capget, &header, caps) && caps[0].effective >> CAP_DAC_OVERRIDE & 1;
}

/* Whether the process itself listens, or at a path our user. 0; -EPERM; -errno. */
static int port_check_peer(const struct port *p, int fd, struct port_error *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	/*
	 * peer.pid is 0 if the listener has no PID in our namespace. If /proc belongs to another
	 * namespace, the PIDs do not compare. Then only the name identifies the process.
	 */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return port_fail(err, -errno, port_unreachable, 0);
	if (p->path && peer.uid != geteuid() && !port_overrides())
		return port_fail(err, -EPERM, "another user listens there", 0);
	if (p->path && (!p->pid || !peer.pid))
		return 0;
	if (peer.pid != p->pid && (peer.pid || proc_is_own_namespace()))
		return port_fail(err, -EPERM, "another process listens on its diagnostic port", 0);
	return 0;
}

int port_connect(const struct port *p, uint64_t deadline_ns, int *ret_fd, struct port_error *err)
{
	struct timespec pause = {.tv_nsec = PORT_RETRY_NS};
	AUTO_CLOSE int fd = -1;
	int r;

	if (p->server) {
		r = port_server_connect(p->server, p->cookie, deadline_ns, ret_fd);
		return r ? port_fail(err, r, "it does not connect", 0) : 0;
	}
	while ((r = p->path ? port_connect_path(p->path, &fd)
			    : dotnet_port_connect(p->opener, p->pid, &fd)) == -EAGAIN) {
		if (clock_monotonic_ns() >= deadline_ns)
			return port_fail(err, -ETIMEDOUT,
					 "its diagnostic port is busy with other connections", 0);
		nanosleep(&pause, NULL);
	}
	if (r)
		return port_fail(err, r, port_unreachable, 0);
	r = port_check_peer(p, fd, err);
	if (!r)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int port_send(int fd, const void *data, size_t len, uint64_t deadline_ns)
{
	for (size_t at = 0; at < len;) {
		ssize_t n =
			send(fd, (const char *)data + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			at += (size_t)n;
			continue;
		}
		if (errno == EAGAIN) {
			int r = port_wait(fd, POLLOUT, deadline_ns);

			if (r)
				return r;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int port_receive(int fd, void *data, size_t len, uint64_t deadline_ns)
{
	for (size_t at = 0; at < len;) {
		int r = port_wait(fd, POLLIN, deadline_ns);

		if (r)
			return r;
		ssize_t n = recv(fd, (char *)data + at, len - at, MSG_DONTWAIT);

		if (!n)
			return -ENODATA;
		if (n > 0)
			at += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return 0;
}

static int port_receive_fail(struct port_error *err, int code)
{
	if (code == -ENODATA || code == -ECONNRESET)
		return port_fail(err, -EBADMSG, "its reply was cut off", 0);
	return port_fail(err, code, "cannot read its reply", 0);
}

/* Reads a reply. The caller frees *ret_payload. */
static int port_reply(int fd, uint64_t deadline_ns, struct ipc_header *ret_header,
		      void **ret_payload, size_t *ret_len, struct port_error *err)
{
	unsigned char head[IPC_HEADER_BYTES];
	struct parse_error bad;
	int r = port_receive(fd, head, sizeof(head), deadline_ns);

	if (r)
		return port_receive_fail(err, r);
	if (ipc_header_parse(head, sizeof(head), ret_header, &bad))
		return port_fail(err, bad.code, bad.what, 0);
	size_t len = ret_header->bytes - IPC_HEADER_BYTES;
	AUTO_FREE void *payload = malloc(len ? len : 1);

	if (!payload)
		return port_fail(err, -ENOMEM, "no memory for its reply", 0);
	r = port_receive(fd, payload, len, deadline_ns);
	if (r)
		return port_receive_fail(err, r);
	*ret_payload = TAKE_PTR(payload);
	*ret_len = len;
	return 0;
}

/* Keeps the first part of the text in an error. */
static void port_note_detail(struct port_error *err, const void *answer, size_t len)
{
	AUTO_FREE char *text = NULL;
	struct parse_error bad;

	if (err && !ipc_error_text_parse(answer, len, &text, &bad))
		snprintf(err->detail, sizeof(err->detail), "%s", text);
}

int port_request(int fd, enum ipc_command command, const void *payload, size_t len,
		 uint64_t deadline_ns, void **ret_payload, size_t *ret_len, struct port_error *err)
{
	struct outbuf message = outbuf_to(-1);
	AUTO_FREE void *answer = NULL;
	struct parse_error bad;
	struct ipc_header header;
	uint32_t hresult;
	size_t answer_len = 0;
	int r = ipc_request(&message, command, payload, len);

	if (!r)
		r = port_send(fd, message.data, message.len, deadline_ns);
	outbuf_close(&message);
	if (r)
		return port_fail(err, r, "the request cannot be sent", 0);
	r = port_reply(fd, deadline_ns, &header, &answer, &answer_len, err);
	if (r)
		return r;
	if (header.ok) {
		*ret_payload = TAKE_PTR(answer);
		*ret_len = answer_len;
		return 0;
	}
	if (ipc_hresult_parse(answer, answer_len, &hresult, &bad))
		return port_fail(err, bad.code, bad.what, 0);
	r = port_fail(err,
		      hresult == IPC_E_UNKNOWN_COMMAND || hresult == IPC_E_NOT_SUPPORTED
			      ? -ENOTSUP
			      : -EREMOTEIO,
		      "a command", hresult);
	port_note_detail(err, answer, answer_len);
	return r;
}

int port_command(const struct port *p, enum ipc_command command, const void *payload, size_t len,
		 uint64_t deadline_ns, struct port_error *err)
{
	AUTO_FREE void *answer = NULL;
	AUTO_CLOSE int fd = -1;
	struct parse_error bad;
	size_t answer_len = 0;
	uint32_t hresult;
	int r = port_connect(p, deadline_ns, &fd, err);

	if (!r)
		r = port_request(fd, command, payload, len, deadline_ns, &answer, &answer_len, err);
	if (r)
		return r;
	if (ipc_hresult_parse(answer, answer_len, &hresult, &bad))
		return port_fail(err, bad.code, bad.what, 0);
	return hresult >> 31 ? port_fail(err, -EREMOTEIO, "a command", hresult) : 0;
}

int port_info(const struct port *p, uint64_t deadline_ns, struct ipc_process_info *ret_info,
	      struct port_error *err)
{
	static const enum ipc_command newest_first[] = {IPC_PROCESS_INFO3, IPC_PROCESS_INFO2,
							IPC_PROCESS_INFO};
	int r = -ENOTSUP;

	for (size_t i = 0; i < sizeof(newest_first) / sizeof(newest_first[0]) && r == -ENOTSUP;
	     i++) {
		AUTO_FREE void *answer = NULL;
		AUTO_CLOSE int fd = -1; /* a runtime takes one command per connection */
		struct parse_error bad;
		size_t len = 0;

		r = port_connect(p, deadline_ns, &fd, err);
		if (!r)
			r = port_request(fd, newest_first[i], NULL, 0, deadline_ns, &answer, &len,
					 err);
		if (!r &&
		    (r = ipc_process_info_parse(newest_first[i], answer, len, ret_info, &bad)))
			return port_fail(err, bad.code, bad.what, 0);
	}
	return r;
}

int port_environment(const struct port *p, uint64_t deadline_ns,
		     struct ipc_environment *ret_environment, struct port_error *err)
{
	AUTO_FREE void *answer = NULL, *data = NULL;
	AUTO_CLOSE int fd = -1;
	struct parse_error bad;
	size_t len = 0, bytes;
	int r = port_connect(p, deadline_ns, &fd, err);

	if (!r)
		r = port_request(fd, IPC_ENVIRONMENT, NULL, 0, deadline_ns, &answer, &len, err);
	if (r)
		return r;
	/* The environment may exceed a message, so it follows the reply. */
	if (ipc_environment_size(answer, len, &bytes, &bad))
		return port_fail(err, bad.code, bad.what, 0);
	data = malloc(bytes ? bytes : 1);
	if (!data)
		return port_fail(err, -ENOMEM, "no memory for its reply", 0);
	r = port_receive(fd, data, bytes, deadline_ns);
	if (r)
		return port_receive_fail(err, r);
	if (ipc_environment_parse(data, bytes, ret_environment, &bad))
		return port_fail(err, bad.code, bad.what, 0);
	return 0;
}

int port_set_variable(const struct port *p, const char *name, const char *value,
		      uint64_t deadline_ns, struct port_error *err)
{
	struct outbuf payload = outbuf_to(-1);

	ipc_put_text(&payload, name);
	ipc_put_text(&payload, value);
	int r = payload.error ? port_fail(err, payload.error, "cannot change a variable", 0)
			      : port_command(p, IPC_SET_ENVIRONMENT, payload.data, payload.len,
					     deadline_ns, err);

	outbuf_close(&payload);
	return r;
}
