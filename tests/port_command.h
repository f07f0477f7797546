/* Commands of the diagnostic port that profcpu does not send, for tests. */
#ifndef TESTS_PORT_COMMAND_H
#define TESTS_PORT_COMMAND_H

#include "base/cleanup.h"
#include "dotnet/eventpipe/port.h"

#include <errno.h>
#include <unistd.h>

/* Since .NET 8. The payload of the first is the u32 kind of files; PERF_MAP_ONLY: no jitdump. */
#define IPC_ENABLE_PERF_MAP ((enum ipc_command)0x0405)
#define IPC_DISABLE_PERF_MAP ((enum ipc_command)0x0406)
#define PERF_MAP_ONLY "\3\0\0"

/*
 * Connects, sends a command whose reply is one HRESULT, and closes. 0; errors of port_connect and
 * port_request; -EREMOTEIO also for a failure HRESULT in a successful reply.
 */
static inline int port_command(struct opener *o, pid_t pid, enum ipc_command command,
			       const void *payload, size_t len, uint64_t deadline_ns,
			       struct port_error *err)
{
	AUTO_FREE void *answer = NULL;
	AUTO_CLOSE int fd = -1;
	struct parse_error bad;
	size_t answer_len = 0;
	uint32_t hresult;
	int r = port_connect(o, pid, deadline_ns, &fd, err);

	if (!r)
		r = port_request(fd, command, payload, len, deadline_ns, &answer, &answer_len, err);
	if (!r && (r = ipc_hresult_parse(answer, answer_len, &hresult, &bad)))
		*err = (struct port_error){.code = r, .what = bad.what};
	if (!r && hresult >> 31) {
		r = -EREMOTEIO;
		*err = (struct port_error){.code = r, .what = "a command", .hresult = hresult};
	}
	return r;
}

#endif
