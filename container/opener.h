/*
 * Opens files of a target: its files, its perf map, its mapped images. Returns descriptors; parsers
 * never open a target's paths themselves.
 *
 * Paths are resolved inside the target's root, so that a link in a container cannot lead outside.
 * The kernel does it (openat2 RESOLVE_IN_ROOT). On kernels without openat2 each component is opened
 * separately, and links are resolved inside the root (resolve.h).
 *
 * A file is opened with the rights of the target, not with ours (rights.h), because a target can
 * put links to files that it may not read. Only regular files are accepted, up to a size that the
 * caller names. Other kinds of files are never opened for reading, so a FIFO cannot block and a
 * device cannot have side effects.
 *
 * A path enters only mounts of file systems that answer: those of disks and memory, and those that
 * the user permits (file_systems.h). Network and FUSE file systems are not entered, and their files
 * are counted. Files of /proc, /sys and similar file systems are refused.
 */
#ifndef CONTAINER_OPENER_H
#define CONTAINER_OPENER_H

#include "container/rights.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct opener;

/*
 * Distinct roots pinned at once, with two descriptors each. A further root replaces an old one
 * whose processes have all ended. If there is none, files of its processes can be opened only while
 * these processes live.
 */
#define OPENER_ROOTS_MAX 128
/* Processes pinned at once. A further one replaces an old one, if possible one that has ended. */
#define OPENER_PINNED_MAX 8192

/*
 * An opener whose own root is that of profcpu, or the directory root_fd, which stays the caller's.
 * 0 or -ENOMEM.
 */
int opener_new(struct opener **ret_opener);
int opener_new_in(int root_fd, struct opener **ret_opener);
void opener_free(struct opener *o);

/*
 * From now on, no opener of this program looks at processes, and none has more rights to files than
 * this user, whose groups are unknown. For a recording that the user may have forged.
 */
void opener_confine(uid_t uid);
bool opener_is_confined(void);

/*
 * Pins a process: keeps its root directory open, and its uid and innermost PID (NSpid) in memory.
 * So its files can be opened after it has ended, up to the limits above. pid is in our PID
 * namespace.
 *
 * Processes with the same mount namespace and root share descriptors, so thousands of processes
 * cost few. The mount namespace stays open too; otherwise the kernel unmounts a container's volumes
 * when its last process ends.
 *
 * A second call for a pinned process updates it: the root may have changed, or the PID may belong
 * to another process. If the process has ended, the old data stay. Rights that the process gained,
 * for instance by a setuid program, do not count: the files may be those of its earlier program.
 *
 * 0; -ESRCH; -EACCES, -EPERM: access.h finds the reason; -EMFILE. After the last three errors the
 * process is pinned without its root, and the functions below that need the root return that error.
 */
int opener_pin(struct opener *o, pid_t pid);

/*
 * Tells that a process with this PID was created. If an ended process with the PID is pinned, its
 * rights do not hold any longer, because files may be the new process's.
 */
void opener_note_new(struct opener *o, pid_t pid);

/*
 * Tells that a pinned process has ended, before anybody waited for it. If it was root up to its
 * end, with all rights, they still hold: it could read each file.
 */
void opener_note_end(struct opener *o, pid_t pid);

/* A pinned process. */
struct opener_process {
	pid_t ns_pid;
	uid_t uid, rights_uid; /* effective; whose rights its files are opened with */
	bool other_root;       /* false: ours, or unknown */
	/*
	 * It has ended, so this data is older than its end. It may have changed its user and root
	 * after that. False after opener_note_end of a process of root.
	 */
	bool ended;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
};
/* Returns the data of a pinned process. 0; -ESRCH: not pinned. */
int opener_process(struct opener *o, pid_t pid, struct opener_process *ret_process);

/*
 * Returns the descriptor of the root directory (O_PATH), borrowed until pid is pinned again. Pins
 * pid first if necessary. Errors of opener_pin.
 */
int opener_root(struct opener *o, pid_t pid, int *ret_fd);

/*
 * Opens a regular file of at most max_bytes inside the target's root, for reading. Pins pid first
 * if necessary. The caller closes *ret_fd.
 *
 * 0; -ENOENT, -ENOTDIR, -ELOOP; -EACCES: type not accepted, or the target itself may not read it;
 * -EXDEV: on a file system that is not entered. -ETIME: the lookup of the path does not end.
 * -E2BIG; errors of opener_pin.
 */
int opener_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd);

#define OPENER_NOBODY RIGHTS_NOBODY

/*
 * The user whose rights a process of the user uid has after its end, without groups. It may have
 * become a process of another user or with another root, so that is OPENER_NOBODY. Only the user
 * who runs profcpu keeps his own rights, unless he is root.
 */
uid_t opener_past_uid(uid_t uid);

/*
 * Like opener_file, inside our own root. If pid is not pinned, it was a process of the user uid, or
 * OPENER_NOBODY: unknown; opener_past_uid has its rights.
 *
 * If pid is pinned and has another root, only debug files of packages open, with the rights of
 * nobody: those below /usr/lib/debug. Others give -ENOENT, because the process chose the path of a
 * file that its root lacks.
 *
 * If pid is not pinned and known to have our root, links are refused (-ELOOP). It may put a link
 * into a directory that both share. Only links directly in "/" and those at a build id in
 * /usr/lib/debug are followed. The same holds after its end, in its own root too, unless it was of
 * the user who runs profcpu.
 */
int opener_own_file(struct opener *o, pid_t pid, uid_t uid, const char *path, uint64_t max_bytes,
		    int *ret_fd);
/*
 * The same with our rights, and never with other links. A path that a target chose may lead to a
 * file that it may not read.
 */
int opener_our_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd);

/*
 * The same for a path in data of unknown origin, such as a recording. It has the rights of the user
 * who runs profcpu; if that is root, those of nobody.
 */
int opener_named_file(struct opener *o, const char *path, uint64_t max_bytes, int *ret_fd);

/*
 * Calls fn for each pinned process whose root is known, with the user whose rights its files are
 * opened with. Returns fn's first result that is not 0.
 */
int opener_each(struct opener *o, int (*fn)(void *ctx, pid_t pid, uid_t uid, bool other_root),
		void *ctx);

/*
 * Opens a regular file of the process pid, which has ended, in our own root with our rights. The
 * last part of path is no link. o: NULL enters each file system. 0; -ELOOP: a link; -EBADMSG:
 * another type; -EXDEV; -ETIME; -errno. The caller closes *ret_fd.
 */
int opener_own_entry(struct opener *o, pid_t pid, const char *path, int *ret_fd);

/*
 * Connects to a stream socket inside the target's root, without blocking. Owners and links are
 * checked as in opener_perfmap. 0; -ENOENT: no socket; -EACCES: another user's, or the target may
 * not connect; errors of opener_file and connect(2). The caller closes *ret_fd.
 */
int opener_socket(struct opener *o, pid_t pid, const char *path, int *ret_fd);

/* A root in which debug files are searched. */
struct opener_place {
	struct opener *opener; /* borrowed */
	pid_t pid;             /* the process whose rights hold; 0: ours */
	bool own;              /* our own root, not the process's */
	bool by_uid;           /* own: if pid is not pinned, the rights of uid hold, not ours */
	uid_t uid;
	/* If pid is not pinned either; see opener_own_file. */
	bool no_links;   /* own: follow no link */
	bool other_root; /* own: it had another root */
};

/* Our own root, for files beside one of opener_named_file; with the same rights. */
struct opener_place opener_named_place(struct opener *o);

/*
 * Like opener_file or opener_own_file, for a file that may not exist. Accepts each size, and counts
 * no skipped file.
 */
int opener_place_open(const struct opener_place *place, const char *path, int *ret_fd);

/*
 * Opens the file that is mapped at [start, end) through /proc/PID/map_files, even if it was deleted
 * or replaced. The target's rights do not matter, because it has the file mapped. Needs
 * CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN (-EPERM) and a living process (-ESRCH). -ENOENT: no such
 * mapping. Other errors as opener_file.
 */
int opener_map_file(struct opener *o, pid_t pid, uint64_t start, uint64_t end, uint64_t max_bytes,
		    int *ret_fd);

/*
 * Whether files of a device in the maps of a process (struct proc_map) may be read: by the mounts
 * that we see, else by those that the process sees. Pins pid if necessary. Rights do not matter.
 */
bool opener_may_read_device(struct opener *o, pid_t pid, dev_t dev);

/*
 * Opens the program that a living process runs, through /proc/PID/exe, if its path is `path`. The
 * target's rights do not matter: a program with mode 0711 runs, though its user may not read it.
 * 0; -ENOENT: it runs another program; errors of opener_map_file.
 */
int opener_program(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd);

/*
 * Opens the target's perf map: first /tmp/perf-NSPID.map in the target's root, then
 * /tmp/perf-PID.map in ours, unless the target has another root with another /tmp. If the target's
 * root is inaccessible, it also tries /tmp/perf-NSPID.map in ours. Everybody may put files there,
 * so the owner must be the target's user or root: uid 0, or the uid that is 0 in the target's user
 * namespace. A link there must belong to the target's user or to the directory's owner, also if
 * fs.protected_symlinks is 0. In our root, links are followed as by opener_own_file. After the end
 * of the process, everybody must be able to read the map, or its user made it in its life. Errors
 * as opener_file; if several places fail, the first error that is not -ENOENT.
 */
int opener_perfmap(struct opener *o, pid_t pid, uint64_t max_bytes, int *ret_fd);

/*
 * For tests: resolves paths as on a kernel without openat2 (before 5.6, or with a seccomp filter
 * that rejects it).
 */
void opener_without_openat2(struct opener *o);
/* For tests: checks rights as without CAP_SETUID. */
void opener_without_setuid(struct opener *o);

#endif
