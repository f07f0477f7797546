/*
 * The mark beside a perf map that profcpu has switched on: perf-NSPID.map.profcpu, its maker's alone (mode 0600), made before the
 * map is. Everybody who uses the map holds a shared flock on the mark, and whoever makes, switches off or removes it an exclusive
 * one; so a mark that can be locked exclusively was left by one that was killed, or the last user is ending.
 *
 * A mark is a claim of whoever owns it, and what it asks for is done with our rights. So a mark of an ordinary user is believed about
 * that user's processes and files only. One of root, and a container's root may be the host's, is believed about any, but whatever it
 * says: the process must have its perf maps in the very directory that the mark is in, and only that process is asked to switch its map
 * off; only perf-N.map and perfinfo-N.map beside the mark are removed, N being the number in the mark's own name, and only regular
 * files. That is no more than root can do itself where it can make files. Links are never followed, and a mark with two names is none.
 */
#ifndef EVENTPIPE_PERF_MAP_MARK_H
#define EVENTPIPE_PERF_MAP_MARK_H

#include "container/target_dir.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERF_MAP_NAME_BYTES 48
#define PERF_MAP_MARK_SUFFIX ".map.profcpu"
#define PERF_MAP_MARK_MAX 512 /* bytes of a mark */

struct perf_map_mark {
	pid_t ns_pid; /* the target's innermost PID, which names the files */
	uint64_t start_ticks; /* opener_process: with the PID it is that process and no other */
	uint64_t pid_ns; /* the PID namespace of profcpu, st_ino of /proc/self/ns/pid */
	pid_t pid; /* the target's PID in there */
	struct target_file map, info; /* perf-NSPID.map and (.NET 8) perfinfo-NSPID.map; ino 0: not known, or none */
};

void perf_map_name(pid_t ns_pid, char *buf); /* each PERF_MAP_NAME_BYTES */
void perf_map_info_name(pid_t ns_pid, char *buf);
void perf_map_mark_name(pid_t ns_pid, char *buf);

/* The text of a mark, of one length whatever is in it, so that it can be overwritten. */
size_t perf_map_mark_text(const struct perf_map_mark *mark, char *buf, size_t cap);
/* 0; -ENODATA: empty, it is just being made; -EBADMSG. */
int perf_map_mark_parse(const char *text, size_t len, struct perf_map_mark *ret_mark);

/* The present PID namespace of ours, 0 where it cannot be told. */
uint64_t perf_map_own_pid_ns(void);

/*
 * Opens a mark for reading and locking. One that a stranger made is none: only root, ourselves and the target's own user are
 * believed, and the latter can harm by it nobody but themselves. 0, and the caller closes *ret_fd; -ENOENT; -EACCES it is
 * another user's; -EBADMSG a stranger's; -errno.
 */
int perf_map_mark_open(int dir_fd, const char *name, uid_t target_uid, int *ret_fd, struct target_file *ret_file);

/* What an open mark says now. 0; -ENODATA: empty, it is just being made; -EBADMSG: no mark; -errno. */
int perf_map_mark_read(int fd, struct perf_map_mark *ret_mark);

/* flock without waiting: 0; -EWOULDBLOCK; -errno. */
int perf_map_mark_lock(int fd, bool exclusive);

/* Whether the name still stands for the mark that is open: it may have been removed while we waited for its lock. */
bool perf_map_mark_stands(int dir_fd, const char *name, const struct target_file *file);

#endif
