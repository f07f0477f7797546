#include "dotnet/eventpipe/port_server.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/reader.h"
#include "base/vec.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SERVER_BACKLOG 255

/* The first message of a runtime: magic, cookie, u64 PID, u16 0. */
static const char server_magic[8] = "ADVR_V1";
#define SERVER_HELLO_BYTES 34

struct server_connection {
	int fd;
	unsigned char hello[SERVER_HELLO_BYTES];
	size_t got; /* bytes of hello */
	struct port_server_runtime runtime;
};

struct port_server {
	int fd;
	struct sockaddr_un address;
	VEC(struct server_connection) connections; /* oldest first */
	VEC(struct port_server_runtime) known;     /* that port_server_next returned */
	VEC(struct pollfd) polled;
};

int port_server_new(const char *path, struct port_server **ret_server)
{
	struct port_server *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->address.sun_family = AF_UNIX;
	s->fd = -1;
	if (strlen(path) >= sizeof(s->address.sun_path))
		r = -ENAMETOOLONG;
	if (!r) {
		/* Nothing is bound yet, so port_server_free must not remove the path. */
		struct sockaddr_un address = {.sun_family = AF_UNIX};

		strcpy(address.sun_path, path);
		s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = s->fd < 0 || bind(s->fd, (const struct sockaddr *)&address, sizeof(address))
			    ? -errno
			    : 0;
		if (!r)
			s->address = address;
	}
	if (!r && listen(s->fd, SERVER_BACKLOG))
		r = -errno;
	if (r) {
		port_server_free(s);
		return r;
	}
	*ret_server = s;
	return 0;
}

void port_server_free(struct port_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->connections.len; i++)
		close(s->connections.v[i].fd);
	vec_free(&s->connections);
	vec_free(&s->known);
	vec_free(&s->polled);
	cleanup_close(&s->fd);
	if (s->address.sun_path[0])
		unlink(s->address.sun_path);
	free(s);
}

int port_server_fd(const struct port_server *s)
{
	return s->fd;
}

/* Removes a connection, and returns its descriptor. */
static int server_take(struct port_server *s, size_t i)
{
	int fd = s->connections.v[i].fd;

	memmove(&s->connections.v[i], &s->connections.v[i + 1],
		(--s->connections.len - i) * sizeof(*s->connections.v));
	return fd;
}

static bool server_is_ready(const struct server_connection *c)
{
	return c->got == SERVER_HELLO_BYTES;
}

/* Accepts the connections that wait. 0; -ENOMEM; -errno. */
static int server_accept(struct port_server *s)
{
	for (;;) {
		struct server_connection c = {0};
		struct ucred peer = {0};
		socklen_t len = sizeof(peer);

		if (vec_reserve(&s->connections, 1))
			return -ENOMEM;
		c.fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (c.fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		/* The oldest one gives up its descriptor. */
		if (c.fd < 0 && (errno == EMFILE || errno == ENFILE) && s->connections.len) {
			close(server_take(s, 0));
			continue;
		}
		if (c.fd < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (!getsockopt(c.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
			c.runtime.pid = peer.pid;
		if (s->connections.len == PORT_SERVER_CONNECTIONS_MAX)
			close(server_take(s, 0));
		s->connections.v[s->connections.len++] = c;
	}
}

/* Reads what a runtime says first. Returns whether the connection is of use. */
static bool server_hear(struct server_connection *c)
{
	if (server_is_ready(c))
		return true;
	while (!server_is_ready(c)) {
		ssize_t n = recv(c->fd, c->hello + c->got, sizeof(c->hello) - c->got, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		c->got += (size_t)n;
	}
	struct reader r = reader_of(c->hello, sizeof(c->hello));

	if (memcmp(reader_bytes(&r, sizeof(server_magic)), server_magic, sizeof(server_magic)) != 0)
		return false;
	memcpy(c->runtime.cookie, reader_bytes(&r, sizeof(c->runtime.cookie)),
	       sizeof(c->runtime.cookie));
	c->runtime.inner_pid = reader_u64(&r);
	return true;
}

/* A connection whose runtime ended, or that sends more than it should, is of no use either. */
static bool server_is_idle(const struct server_connection *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Takes what has come: new connections, and what they say. 0; -ENOMEM; -errno. */
static int server_update(struct port_server *s)
{
	int r = server_accept(s);

	for (size_t i = 0; i < s->connections.len;) {
		struct server_connection *c = &s->connections.v[i];

		if (server_hear(c) && (!server_is_ready(c) || server_is_idle(c)))
			i++;
		else
			close(server_take(s, i));
	}
	return r;
}

/* Waits for anything to happen. 0; -ETIMEDOUT; -ENOMEM; -errno. */
static int server_wait(struct port_server *s, uint64_t deadline_ns)
{
	uint64_t now = clock_monotonic_ns();

	if (now >= deadline_ns)
		return -ETIMEDOUT;
	uint64_t left_ms = (deadline_ns - now) / NS_PER_MS + 1;

	s->polled.len = 0;
	if (vec_push(&s->polled, ((struct pollfd){.fd = s->fd, .events = POLLIN})))
		return -ENOMEM;
	for (size_t i = 0; i < s->connections.len; i++)
		if (vec_push(&s->polled,
			     ((struct pollfd){.fd = s->connections.v[i].fd, .events = POLLIN})))
			return -ENOMEM;
	int n = poll(s->polled.v, s->polled.len, left_ms > INT_MAX ? INT_MAX : (int)left_ms);

	return n < 0 && errno != EINTR ? -errno : 0;
}

static bool server_is_of(const struct server_connection *c, const unsigned char *cookie)
{
	return server_is_ready(c) && !memcmp(c->runtime.cookie, cookie, sizeof(c->runtime.cookie));
}

static bool server_knows(const struct port_server *s, const unsigned char *cookie)
{
	for (size_t i = 0; i < s->known.len; i++)
		if (!memcmp(s->known.v[i].cookie, cookie, sizeof(s->known.v[i].cookie)))
			return true;
	return false;
}

int port_server_next(struct port_server *s, uint64_t deadline_ns,
		     struct port_server_runtime *ret_runtime)
{
	int r;

	while (!(r = server_update(s))) {
		for (size_t i = 0; i < s->connections.len; i++) {
			const struct server_connection *c = &s->connections.v[i];

			if (!server_is_ready(c) || server_knows(s, c->runtime.cookie))
				continue;
			*ret_runtime = c->runtime;
			if (s->known.len == PORT_SERVER_KNOWN_MAX)
				memmove(s->known.v, s->known.v + 1,
					--s->known.len * sizeof(*s->known.v));
			return vec_push(&s->known, c->runtime);
		}
		r = server_wait(s, deadline_ns);
		if (r)
			break;
	}
	return r;
}

int port_server_connect(struct port_server *s, const unsigned char *cookie, uint64_t deadline_ns,
			int *ret_fd)
{
	int r;

	while (!(r = server_update(s))) {
		for (size_t i = 0; i < s->connections.len; i++)
			if (server_is_of(&s->connections.v[i], cookie)) {
				*ret_fd = server_take(s, i);
				return 0;
			}
		r = server_wait(s, deadline_ns);
		if (r)
			break;
	}
	return r;
}
