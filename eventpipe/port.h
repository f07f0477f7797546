/*
 * Asks a runtime through its default diagnostic port, wherever that is: any PID namespace, mount
 * namespace and TMPDIR. Each function ends by its deadline whatever the runtime does; a runtime
 * answers one command after the other, so another tool's long one delays ours.
 */
#ifndef EVENTPIPE_PORT_H
#define EVENTPIPE_PORT_H

#include "container/opener.h"
#include "eventpipe/ipc.h"

#include <stdint.h>
#include <sys/types.h>

#define PORT_TEXT_BYTES 192

/* What went wrong, to be said in words. */
struct port_error {
	int code;         /* what the function returned */
	const char *what; /* static; what was being done, or what is wrong with the answer */
	uint32_t hresult; /* with -EREMOTEIO and -ENOTSUP */
};

/* "it did not answer in time", "it answered that it does not know this command (0x80131385)": at
 * most PORT_TEXT_BYTES. */
void port_error_text(const struct port_error *e, char *buf, size_t cap);

/*
 * A connection to the process's port, not blocking. That the one who listens is this process is
 * checked by the name, which has its PID and start time, and by the socket's own credentials. 0;
 * -ENOENT no port: not .NET, switched off, or elsewhere; -ECONNREFUSED nobody listens any more;
 * -EACCES; -EPERM somebody else listens there; -ETIMEDOUT; errors of opener_hold.
 */
int port_connect(struct opener *o, pid_t pid, uint64_t deadline_ns, int *ret_fd,
		 struct port_error *err);

/* Sends a whole message, or receives exactly len bytes. 0; -ETIMEDOUT; -ENODATA it ended before;
 * -errno. */
int port_send(int fd, const void *data, size_t len, uint64_t deadline_ns);
int port_receive(int fd, void *data, size_t len, uint64_t deadline_ns);

/*
 * One command and its reply on a connection: sends it and gives the payload of an OK, which the
 * caller frees. 0; -ENOTSUP: the runtime does not know the command; -EREMOTEIO: it answered with an
 * error, err->hresult; -EBADMSG: not an answer, or half of one; -ETIMEDOUT; -errno.
 */
int port_ask(int fd, enum ipc_command command, const void *payload, size_t len,
	     uint64_t deadline_ns, void **ret_payload, size_t *ret_len, struct port_error *err);

/* Connects, asks, and closes, for commands whose reply is one HRESULT. 0; errors of both;
 * -EREMOTEIO also for an HRESULT that is a failure in an OK. */
int port_command(struct opener *o, pid_t pid, enum ipc_command command, const void *payload,
		 size_t len, uint64_t deadline_ns, struct port_error *err);

/* What the runtime says of itself, by the newest command that it knows. Errors of the above. */
int port_info(struct opener *o, pid_t pid, uint64_t deadline_ns, struct ipc_process_info *ret_info,
	      struct port_error *err);

#endif
