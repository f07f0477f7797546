/*
 * The one door to what belongs to a target: its files, its perf map, its mapped images. Hands out descriptors; parsers
 * never open paths of a target. Paths are resolved inside the target's root (openat2 RESOLVE_IN_ROOT; where the kernel
 * lacks it, component by component without following links), so a link in a container cannot lead outside.
 * Accepted are regular files owned by root or the target's uid, up to a size that the caller names.
 */
#ifndef CONTAINER_OPENER_H
#define CONTAINER_OPENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct opener;

int opener_new(struct opener **ret_opener); /* 0 or -ENOMEM */
void opener_free(struct opener *o);

/*
 * Keeps a process's root directory, uid and innermost PID (NSpid), so that its files can be opened after it has ended.
 * Processes of one mount namespace and root share one descriptor, so thousands of processes cost few. pid is in our
 * PID namespace. 0; -ESRCH; -EACCES, -EPERM (CAP_SYS_PTRACE missing); -EMFILE (the process is remembered without root).
 */
int opener_hold(struct opener *o, pid_t pid);

/* Tells whether pid is held and by what: its innermost PID, its uid, and whether its root is another than ours. */
struct opener_process {
	pid_t ns_pid;
	uid_t uid;
	bool other_root;
};
int opener_process(struct opener *o, pid_t pid, struct opener_process *ret_process); /* 0 or -ESRCH */

/* The root directory's descriptor (O_PATH), borrowed; holds pid first if need be. Errors of opener_hold. */
int opener_root(struct opener *o, pid_t pid, int *ret_fd);

/* A file inside the target's root, read-only, regular, at most max_bytes. 0; -ENOENT; -EACCES (owner or type not accepted,
 * or no permission); -E2BIG; errors of opener_hold. The caller closes *ret_fd. */
int opener_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd);

/* The file mapped at [start, end) through /proc/PID/map_files, also when it was deleted or replaced. As opener_file. */
int opener_map_file(struct opener *o, pid_t pid, uint64_t start, uint64_t end, uint64_t max_bytes, int *ret_fd);

/* /tmp/perf-NSPID.map in the target's root, then in ours under both PIDs. As opener_file. */
int opener_perfmap(struct opener *o, pid_t pid, uint64_t max_bytes, int *ret_fd);

#endif
