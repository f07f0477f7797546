/*
 * .NET runtimes in processes: whether a process has one, its version, and its diagnostic port.
 * Source for the port: dotnet/diagnostics documentation/design-docs/ipc-protocol.md. The rest was
 * observed on .NET 10.
 */
#ifndef CONTAINER_DOTNET_PROCESS_H
#define CONTAINER_DOTNET_PROCESS_H

#include "container/dotnet_text.h"
#include "container/opener.h"
#include "container/proc.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DOTNET_PORT_BYTES 108 /* sun_path */

struct dotnet_runtime {
	bool is_dotnet;
	char version[DOTNET_VERSION_BYTES]; /* "10.0.12"; empty: unknown */
};

/*
 * Finds out whether a process runs .NET, by its memory map. If the map is not readable, searches
 * our own /tmp for a diagnostic port with its PID and start time. Returns 0, also for processes
 * without .NET; -EACCES, -EPERM, -E2BIG, -ETIMEDOUT (limit): unknown; -ESRCH; -errno.
 */
int dotnet_probe(struct opener *o, pid_t pid, const struct proc_maps_limit *limit,
		 struct dotnet_runtime *ret_runtime);

/*
 * Searches the memory map for assemblies that a program needs to load collectible assemblies:
 * System.Runtime.Loader (AssemblyLoadContext) and System.Reflection.Emit (AssemblyBuilder). A
 * program that uses one of them keeps it mapped. *ret_file: its file name, static; NULL: none.
 *
 * 0; -ENODATA: no assembly is mapped as a file of its own, as in a single-file program; errors of
 * proc_scan_maps, which ends by until_ns.
 */
int dotnet_loader_file(pid_t pid, uint64_t until_ns, const char **ret_file);

enum dotnet_port_state {
	DOTNET_PORT_OPEN, /* the runtime listens, and we may connect */
	/* No such socket: switched off, or in a TMPDIR that we may not read. */
	DOTNET_PORT_NONE,
	DOTNET_PORT_DEAD,   /* nobody listens */
	DOTNET_PORT_DENIED, /* connecting needs CAP_DAC_OVERRIDE or the target's uid */
};

/*
 * Finds the default diagnostic port and tries to connect. The port is
 * ${TMPDIR:-/tmp}/dotnet-diagnostic-NSPID-START-socket in the target's root. path: receives the
 * path in that root, even without a socket there; at least DOTNET_PORT_BYTES. 0 or errors of
 * opener_pin.
 */
int dotnet_port(struct opener *o, pid_t pid, enum dotnet_port_state *ret_state, char *path,
		size_t cap);

/*
 * Connects to the default diagnostic port, without blocking. 0; -ENOENT: no such socket;
 * -ECONNREFUSED: nobody listens; -EAGAIN: its queue is full, try later; -EACCES, -EPERM; errors of
 * opener_pin. The caller closes *ret_fd.
 */
int dotnet_port_connect(struct opener *o, pid_t pid, int *ret_fd);

#endif
