/* The perf map of a running .NET process without a map of its own, as an oracle for its names. */
#ifndef TESTS_HELPERS_RUNTIME_MAP_H
#define TESTS_HELPERS_RUNTIME_MAP_H

#include "container/opener.h"
#include "container/proc.h"
#include "symbols/jit/perfmap.h"
#include "tests/port_command.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/*
 * Lets the runtime write all methods compiled now, and go on. On success pass *ret_fd, the file, to
 * runtime_map_end. Returns 0 or -errno, after a message.
 */
static inline int runtime_map_begin(struct opener *o, pid_t pid, uint64_t deadline_ns, int *ret_fd)
{
	struct port_error err = {0};
	char text[PORT_TEXT_BYTES] = "its file cannot be read";
	int r = port_command(PORT_OF(pid), IPC_ENABLE_PERF_MAP, PERF_MAP_ONLY,
			     sizeof(PERF_MAP_ONLY), deadline_ns, &err);

	if (r)
		port_error_text(&err, text, sizeof(text));
	else
		r = opener_perfmap(o, pid, PERFMAP_BYTES_MAX, ret_fd);
	if (r)
		fprintf(stderr, "no perf map: %s\n", text);
	return r;
}

/* Ends the writing, and removes and closes the file. Returns 0 or -errno. */
static inline int runtime_map_end(struct opener *o, pid_t pid, uint64_t deadline_ns, int fd)
{
	struct port_error err;
	struct proc_status status;
	char path[64];
	int r = port_command(PORT_OF(pid), IPC_DISABLE_PERF_MAP, NULL, 0, deadline_ns, &err);

	close(fd);
	if (!r)
		r = proc_status(pid, &status);
	if (r)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", pid, status.ns_pid);
	return unlink(path) ? -errno : 0;
}

#endif
