/*
 * A socket to which runtimes connect: their environment has DOTNET_DiagnosticPorts=PATH. Each
 * runtime keeps one connection that waits for a command. The command uses it up, and then the
 * runtime connects again. Specification: dotnet/diagnostics,
 * documentation/design-docs/ipc-protocol.md.
 */
#ifndef DOTNET_EVENTPIPE_PORT_SERVER_H
#define DOTNET_EVENTPIPE_PORT_SERVER_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

#define PORT_SERVER_COOKIE_BYTES 16
#define PORT_SERVER_CONNECTIONS_MAX 64 /* further ones replace the oldest */
#define PORT_SERVER_KNOWN_MAX 4096     /* runtimes; of further ones, the oldest is forgotten */

struct port_server;

/* A runtime that connected. */
struct port_server_runtime {
	pid_t pid;                                      /* 0: not in our PID namespace */
	uint64_t inner_pid;                             /* in its own namespace */
	unsigned char cookie[PORT_SERVER_COOKIE_BYTES]; /* constant for its life */
};

/*
 * Creates the socket, with a mode that the umask reduces. 0; -EADDRINUSE: the path exists;
 * -ENAMETOOLONG; -ENOMEM; -errno.
 */
int port_server_new(const char *path, struct port_server **ret_server);

/* Closes it and removes the socket. NULL is fine. */
void port_server_free(struct port_server *s);

/* For poll: readable when a runtime connects. */
int port_server_fd(const struct port_server *s);

/*
 * Waits for a runtime that this function has not returned before. 0; -ETIMEDOUT; -ENOMEM; -errno.
 */
int port_server_next(struct port_server *s, uint64_t deadline_ns,
		     struct port_server_runtime *ret_runtime);

/*
 * Waits for a connection of a runtime, which the caller closes. It does not block. 0; -ETIMEDOUT;
 * -ENOMEM; -errno.
 */
int port_server_connect(struct port_server *s, const unsigned char *cookie, uint64_t deadline_ns,
			int *ret_fd);

#endif
