/*
 * The one door to what belongs to a target: its files, its perf map, its mapped images. Hands out descriptors; parsers
 * never open paths of a target. Paths are resolved inside the target's root (openat2 RESOLVE_IN_ROOT; where the kernel
 * lacks it, component by component with links resolved inside the root), so a link in a container cannot lead outside.
 * Accepted are regular files owned by root or the target's uid, up to a size that the caller names. "Root" is uid 0 and the
 * uid that is 0 in the target's user namespace. Nothing but a regular file is ever opened for reading: a FIFO or a device in
 * its place does not hang and has no side effect. Files of /proc, /sys and the like are refused.
 *
 * What it cannot guard against: a FUSE file system of the target that does not answer.
 */
#ifndef CONTAINER_OPENER_H
#define CONTAINER_OPENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct opener;

/* Distinct roots held at once, two descriptors each. Files of processes with further roots open while they live. */
#define OPENER_ROOTS_MAX 128

int opener_new(struct opener **ret_opener); /* 0 or -ENOMEM */
void opener_free(struct opener *o);

/*
 * Keeps a process's root directory, uid and innermost PID (NSpid), so that its files can be opened after it has ended.
 * Processes of one mount namespace and root share one descriptor, so thousands of processes cost few. The mount namespace is
 * kept too: without it the kernel takes a container's volumes away when its last process ends. pid is in our PID namespace.
 * Called again for a process that is held it looks again (a process may have changed its root, or the PID may belong to
 * another process now); what was held stays where the process has ended.
 * 0; -ESRCH; -EACCES, -EPERM (access.h tells why); -EMFILE. After the latter three the process is remembered without
 * root, and the same error comes from the functions below that need it.
 */
int opener_hold(struct opener *o, pid_t pid);

/* Tells whether pid is held and by what: its innermost PID, its uid, and whether its root is another than ours. */
struct opener_process {
	pid_t ns_pid;
	uid_t uid;
	bool other_root; /* false where the root is not known */
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
};
int opener_process(struct opener *o, pid_t pid, struct opener_process *ret_process); /* 0 or -ESRCH */

/* The root directory's descriptor (O_PATH), borrowed until pid is held again; holds pid first if need be. Errors of
 * opener_hold. */
int opener_root(struct opener *o, pid_t pid, int *ret_fd);

/*
 * A file inside the target's root, read-only, regular, at most max_bytes. Holds pid first if need be. 0; -ENOENT, -ENOTDIR,
 * -ELOOP; -EACCES (owner or type not accepted, or no permission); -E2BIG; errors of opener_hold. The caller closes
 * *ret_fd.
 */
int opener_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd);

/* Anything inside the target's root as an O_PATH descriptor, of whatever type, owner and size: to fstat it, or to
 * connect to a socket through /proc/self/fd. Links are followed, inside the root. As opener_file. */
int opener_path(struct opener *o, pid_t pid, const char *path, int *ret_fd);

/*
 * The file mapped at [start, end) through /proc/PID/map_files, also when it was deleted or replaced. Any owner: it is
 * what the target itself runs. Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN (-EPERM) and the living process (-ESRCH).
 * -ENOENT: no such mapping. Else as opener_file.
 */
int opener_map_file(struct opener *o, pid_t pid, uint64_t start, uint64_t end, uint64_t max_bytes, int *ret_fd);

/*
 * /tmp/perf-NSPID.map in the target's root, then /tmp/perf-PID.map in ours, and /tmp/perf-NSPID.map in ours where the
 * target's root cannot be entered. As opener_file; of several errors that of the first place that is not -ENOENT.
 */
int opener_perfmap(struct opener *o, pid_t pid, uint64_t max_bytes, int *ret_fd);

/*
 * Opens for reading what an O_PATH descriptor stands for, which the caller has found to be a regular file: that very inode, whatever is
 * under its name by now. 0, and the caller closes *ret_fd; -EACCES; -errno.
 */
int opener_reopen(int path_fd, int *ret_fd);

/* Whether a descriptor's file is none that is on a disk (/proc, /sys, ...): reading it may wait, or show what the kernel shows to us and
 * not to the target. True where that cannot be told. */
bool opener_is_kernel_fs(int fd);

/* For tests: resolve as on a kernel without openat2 (before 5.6, or a seccomp filter that does not know it). */
void opener_without_openat2(struct opener *o);

#endif
