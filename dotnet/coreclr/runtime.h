/* Finds the runtime in a .NET process and reads its memory, for jit_code.h and unwind/clr_code.h.
 */
#ifndef DOTNET_CORECLR_RUNTIME_H
#define DOTNET_CORECLR_RUNTIME_H

#include "dotnet/coreclr/jit_code.h"

#include <sys/types.h>

/*
 * Callbacks that read the memory of pid. Valid without limit. After the process has ended they
 * return -ESRCH.
 */
struct clr_io clr_runtime_io(pid_t pid);

/*
 * Finds the runtime's module before until_ns (CLOCK_MONOTONIC). maps: text of /proc/PID/maps;
 * modified. Errors of clr_locate_in_process; -ETIMEDOUT, -ESRCH, -EPERM, -EFAULT.
 */
int clr_runtime_locate(pid_t pid, uint64_t until_ns, char *maps, struct clr_anchors *ret_anchors);

/*
 * Finds the runtime in pid and prepares to scan its code, before until_ns (CLOCK_MONOTONIC). Tries
 * out a built-in layout first. err->what (static) explains each error in words.
 *   0;
 *   -ENOENT: no CoreCLR (native AOT, no .NET, or not started yet);
 *   -EAGAIN: starting;
 *   -ENOTSUP: unknown layout (.NET 7 and older, or too new);
 *   -EPERM, -EACCES: container/access.h explains them;
 *   -ETIMEDOUT; -ESRCH; -EBADMSG; -ENOMEM; -errno.
 */
int clr_runtime_open(pid_t pid, uint64_t until_ns, struct clr_jit_code **ret,
		     struct parse_error *err);

#endif
