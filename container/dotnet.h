/* .NET runtimes in processes: whether there is one, its version, its diagnostic port.
 * dotnet/diagnostics documentation/design-docs/ipc-protocol.md; the rest was seen on .NET 10. */
#ifndef CONTAINER_DOTNET_H
#define CONTAINER_DOTNET_H

#include "container/opener.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DOTNET_VERSION_BYTES 32
#define DOTNET_PORT_BYTES 108               /* sun_path */
#define DOTNET_CONFIG_MAX ((size_t)1 << 20) /* bytes of a runtimeconfig.json */

/* What the memory map alone says. Texts are empty where it does not say. */
struct dotnet_maps {
	bool coreclr; /* libcoreclr.so is mapped and executable */
	bool jit;  /* /memfd:doublemapper: CoreCLR with W^X, also linked into a single-file host */
	bool port; /* /memfd:dotnet_ipc_created: a runtime since .NET 10, CoreCLR or native AOT,
		      with a diagnostic port */
	char version[DOTNET_VERSION_BYTES]; /* of a shared runtime: the folder of libcoreclr.so */
	char coreclr_dir[4096];             /* folder of libcoreclr.so, in the target's root */
};

/* maps: the text of /proc/PID/maps, changed by reading (proc_map_next). */
void dotnet_scan_maps(char *maps, struct dotnet_maps *ret_maps);

/* The runtime's version out of an application's NAME.runtimeconfig.json: of the framework
 * Microsoft.NETCore.App. 0 or -ENOENT. */
int dotnet_config_version(const char *json, char *version, size_t cap);

struct dotnet_runtime {
	bool is_dotnet;
	char version[DOTNET_VERSION_BYTES]; /* "10.0.12"; empty where it cannot be told */
};

/*
 * Looks at a process: its maps; where they may not be read, whether the diagnostic port with its
 * number and start time is in our own /tmp. 0, also when it is not .NET; -EACCES, -EPERM: it could
 * not be told; -ESRCH; -errno.
 */
int dotnet_look(struct opener *o, pid_t pid, struct dotnet_runtime *ret_runtime);

/* A variable of the environment that the process was started with. 0; -ENOENT; -ENAMETOOLONG; errors of proc_read. */
int dotnet_env(pid_t pid, const char *name, char *buf, size_t cap);

enum dotnet_port_state {
	DOTNET_PORT_OPEN,   /* somebody listens, and we may connect */
	DOTNET_PORT_NONE,   /* no such socket: switched off, or TMPDIR is elsewhere and may not be
			       read */
	DOTNET_PORT_DEAD,   /* nobody listens */
	DOTNET_PORT_DENIED, /* CAP_DAC_OVERRIDE or the target's uid is needed */
};

/*
 * Finds the default diagnostic port, ${TMPDIR:-/tmp}/dotnet-diagnostic-NSPID-START-socket, in the
 * target's root, and tries to connect. path: where it is or would be, in the target's root; at
 * least DOTNET_PORT_BYTES. 0 or errors of opener_hold.
 */
int dotnet_port(struct opener *o, pid_t pid, enum dotnet_port_state *ret_state, char *path,
		size_t cap);

/* A connection to it, not blocking. 0; -ENOENT no such socket; -ECONNREFUSED nobody listens;
 * -EACCES, -EPERM; -EAGAIN its queue is full: later; errors of opener_hold. */
int dotnet_port_connect(struct opener *o, pid_t pid, int *ret_fd);

#endif
