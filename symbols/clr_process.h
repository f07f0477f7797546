/* The JIT code of a living .NET process: clr_heap over its memory. */
#ifndef SYMBOLS_CLR_PROCESS_H
#define SYMBOLS_CLR_PROCESS_H

#include "symbols/clr_heap.h"

#include <sys/types.h>

/* How the memory of pid is read. Valid as long as anyone likes; after the process's end its functions give -ESRCH. */
struct clr_io clr_process_io(pid_t pid);

/* Where the runtime's module is, by until_ns (CLOCK_MONOTONIC). maps: the text of /proc/PID/maps, changed. Errors of clr_contract_locate;
 * -ETIMEDOUT, -ESRCH, -EPERM, -EFAULT. */
int clr_process_find(pid_t pid, uint64_t until_ns, char *maps, struct clr_anchors *ret_anchors);

/*
 * Finds the runtime in pid and gets ready to scan its code, by until_ns (CLOCK_MONOTONIC). Where the layout is one of ours, it is tried
 * first. 0; -ENOENT: no CoreCLR (native AOT, no .NET, or it has not begun yet); -EAGAIN: it begins; -ENOTSUP: its layout is not
 * known (.NET 7 and older, or newer than what we know); -ETIMEDOUT; -ESRCH; -EPERM, -EACCES (access.h tells why); -EBADMSG; -ENOMEM; -errno.
 * err->what (static) says each in words.
 */
int clr_process_open(pid_t pid, uint64_t until_ns, struct clr_heap **ret, struct parse_error *err);

#endif
