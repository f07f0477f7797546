/*
 * Sends commands to a runtime through its diagnostic port. Each function ends by its deadline,
 * whatever the runtime does. A runtime answers commands one after the other, so a long command of
 * another tool delays ours.
 */
#ifndef DOTNET_EVENTPIPE_PORT_H
#define DOTNET_EVENTPIPE_PORT_H

#include "container/opener.h"
#include "dotnet/eventpipe/ipc.h"
#include "dotnet/eventpipe/port_server.h"

#include <stdint.h>
#include <sys/types.h>

#define PORT_TEXT_BYTES 192
#define PORT_DETAIL_BYTES 256

/*
 * How to reach a runtime; members are borrowed. By its process: its default port, in any PID
 * namespace, mount namespace and TMPDIR (container/dotnet_process.h finds its socket). Or by its
 * connections to a socket of ours. Or by the path of a socket on which it listens.
 */
struct port {
	struct opener *opener;
	pid_t pid; /* 0: unknown */
	struct port_server *server;
	unsigned char cookie[PORT_SERVER_COOKIE_BYTES]; /* with server */
	const char *path;
};

/* An error of the port; port_error_text gives it in words. */
struct port_error {
	int code;         /* result of the function */
	const char *what; /* static; the failed step, or the fault in the reply */
	uint32_t hresult; /* with -EREMOTEIO and -ENOTSUP */
	/* With -EREMOTEIO: what the runtime says of it, for instance the errors of its dump. */
	char detail[PORT_DETAIL_BYTES];
};

/*
 * Writes an error in words, in at most PORT_TEXT_BYTES. Examples: "the runtime did not answer in
 * time (...)", "the runtime answered: it does not know this command (0x80131385; ...)".
 */
void port_error_text(const struct port_error *e, char *buf, size_t cap);

/*
 * Connects to the port; the connection does not block. At the default port of a process, checks
 * that this process listens: by the name, which has its PID and start time, and by the socket's
 * credentials. At a path, checks that the listener runs as our user, unless we have
 * CAP_DAC_OVERRIDE, and that it is p->pid, if that is set.
 *   0;
 *   -ENOENT: no port (not .NET, switched off, or elsewhere);
 *   -ECONNREFUSED: nobody listens any more;
 *   -ENOTSOCK; -ENAMETOOLONG: not with a path that a socket can have;
 *   -EPERM: another process or user listens;
 *   -EACCES; -ETIMEDOUT; errors of opener_pin.
 */
int port_connect(const struct port *p, uint64_t deadline_ns, int *ret_fd, struct port_error *err);

/*
 * Commands of this program end with -ECANCELED as soon as this descriptor is readable, for instance
 * of a signal. It is borrowed; -1: none.
 */
void port_cancel_on(int fd);

/*
 * Send a whole message, or receive exactly len bytes. 0; -ETIMEDOUT; -ENODATA: the connection
 * ended; -errno.
 */
int port_send(int fd, const void *data, size_t len, uint64_t deadline_ns);
int port_receive(int fd, void *data, size_t len, uint64_t deadline_ns);

/*
 * Sends a command and receives its reply. On success the caller frees *ret_payload.
 *   0;
 *   -ENOTSUP: the runtime does not know the command;
 *   -EREMOTEIO: the runtime replied with an error, in err->hresult;
 *   -EBADMSG: invalid or partial reply;
 *   -ETIMEDOUT; -errno.
 */
int port_request(int fd, enum ipc_command command, const void *payload, size_t len,
		 uint64_t deadline_ns, void **ret_payload, size_t *ret_len, struct port_error *err);

/*
 * Connects, sends a command whose reply is one HRESULT, and closes. Errors of the above;
 * -EREMOTEIO: also for a failure in a successful reply.
 */
int port_command(const struct port *p, enum ipc_command command, const void *payload, size_t len,
		 uint64_t deadline_ns, struct port_error *err);

/*
 * Gets the runtime's description of itself, by the newest command that it knows. Errors of the
 * above.
 */
int port_info(const struct port *p, uint64_t deadline_ns, struct ipc_process_info *ret_info,
	      struct port_error *err);

/*
 * Sets an environment variable of the process; "" removes it. Errors of port_command; -EREMOTEIO,
 * also to remove one that does not exist.
 */
int port_set_variable(const struct port *p, const char *name, const char *value,
		      uint64_t deadline_ns, struct port_error *err);

/*
 * Gets the environment as the runtime has it, with variables that were set after its start. Free it
 * by ipc_environment_free. Errors of the above.
 */
int port_environment(const struct port *p, uint64_t deadline_ns,
		     struct ipc_environment *ret_environment, struct port_error *err);

#endif
