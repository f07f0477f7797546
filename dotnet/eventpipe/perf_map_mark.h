/*
 * The mark of a perf map that profcpu has switched on: the file perf-NSPID.map.profcpu beside it.
 * It is made before the map, with mode 0600.
 *
 * Each user of the map holds a shared flock on the mark. Making, switching off and removing the map
 * takes an exclusive one. So if the exclusive lock is free, the maker was killed, or the last user
 * is ending.
 *
 * A mark requests actions that happen with our rights, so it is trusted only as far as its owner.
 * An ordinary user's mark applies to that user's processes and files only. A mark of root applies
 * to any process, but root of a container may be root of the host. So these limits hold for every
 * mark:
 *   - The process must have its perf maps in the directory of the mark.
 *   - Only that process gets a request to switch its map off.
 *   - Only the regular files perf-N.map and perfinfo-N.map beside the mark are removed.
 *   - N is the number in the mark's name.
 *
 * Root can do the same wherever it can make files. Links are never followed, and a mark with two
 * names is invalid.
 */
#ifndef DOTNET_EVENTPIPE_PERF_MAP_MARK_H
#define DOTNET_EVENTPIPE_PERF_MAP_MARK_H

#include "container/target_dir.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERF_MAP_NAME_BYTES 48
#define PERF_MAP_MARK_SUFFIX ".map.profcpu"
#define PERF_MAP_MARK_MAX 512 /* bytes of a mark */

struct perf_map_mark {
	pid_t ns_pid;         /* the target's innermost PID, which is in the file names */
	uint64_t start_ticks; /* of the target (opener_process); with the PID identifies it */
	uint64_t pid_ns;      /* profcpu's PID namespace: st_ino of /proc/self/ns/pid */
	pid_t pid;            /* the target's PID in that namespace */
	/* perf-NSPID.map and (.NET 8) perfinfo-NSPID.map; ino 0: unknown or absent. */
	struct target_file map, info;
};

/* Names of the files; buf has PERF_MAP_NAME_BYTES. */
void perf_map_name(pid_t ns_pid, char *buf);
void perf_map_info_name(pid_t ns_pid, char *buf);
void perf_map_mark_name(pid_t ns_pid, char *buf);

/* Writes the text of a mark. It has constant length, so it can be overwritten in place. */
size_t perf_map_mark_text(const struct perf_map_mark *mark, char *buf, size_t cap);
/* Parses the text of a mark. 0; -ENODATA: empty, because it is being made; -EBADMSG. */
int perf_map_mark_parse(const char *text, size_t len, struct perf_map_mark *ret_mark);

/* Our PID namespace; 0 if unknown. */
uint64_t perf_map_own_pid_ns(void);

/*
 * Opens a mark for reading and locking. Accepts only marks of root, of ourselves and of the
 * target's user, who can harm only itself by it. The caller closes *ret_fd. 0; -ENOENT; -EACCES:
 * another user's file, unreadable; -EBADMSG: another user's; -errno.
 */
int perf_map_mark_open(int dir_fd, const char *name, uid_t target_uid, int *ret_fd,
		       struct target_file *ret_file);

/*
 * Reads an open mark. 0; -ENODATA: empty, because it is being made; -EBADMSG: not a mark; -errno.
 */
int perf_map_mark_read(int fd, struct perf_map_mark *ret_mark);

/* Locks by flock without waiting. 0; -EWOULDBLOCK; -errno. */
int perf_map_mark_lock(int fd, bool exclusive);

/*
 * Whether the name still refers to the open mark. It may have been removed while we waited for its
 * lock.
 */
bool perf_map_mark_is_current(int dir_fd, const char *name, const struct target_file *file);

#endif
