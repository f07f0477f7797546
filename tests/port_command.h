/* Commands of the diagnostic port that profcpu does not send, for tests; and the port of a process.
 */
#ifndef TESTS_PORT_COMMAND_H
#define TESTS_PORT_COMMAND_H

#include "dotnet/eventpipe/port.h"

/* Since .NET 8. The payload of the first is the u32 kind of files; PERF_MAP_ONLY: no jitdump. */
#define IPC_ENABLE_PERF_MAP ((enum ipc_command)0x0405)
#define IPC_DISABLE_PERF_MAP ((enum ipc_command)0x0406)
#define PERF_MAP_ONLY "\3\0\0"

#define PORT_OF(process) (&(struct port){.opener = o, .pid = (process)})

#endif
