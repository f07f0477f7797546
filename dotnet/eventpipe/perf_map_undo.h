/*
 * Undoes what profcpu did to a process's perf map: for its last user, or after a profcpu that was
 * killed.
 */
#ifndef DOTNET_EVENTPIPE_PERF_MAP_UNDO_H
#define DOTNET_EVENTPIPE_PERF_MAP_UNDO_H

#include "dotnet/eventpipe/perf_map_mark.h"
#include "dotnet/eventpipe/port.h"

#include <stdint.h>
#include <sys/types.h>

/* A map to undo. The mark must be locked exclusively. */
struct perf_map_undo {
	int dir_fd;
	struct perf_map_mark mark;
	struct target_file mark_file;
	pid_t pid;     /* in our PID namespace; 0: the process has ended */
	bool replaced; /* the process executed another program */
};

/*
 * Switches the map off if the process lives. Then removes the map, its other file and at last the
 * mark. Leaves files that a later process or program with the same number writes. Such a file may
 * even be ours, because a runtime overwrites an existing file. 0; errors of port_command: all files
 * stay; -EACCES, -EPERM, -EROFS: a file could not be removed.
 */
int perf_map_undo(struct opener *o, const struct perf_map_undo *undo, uint64_t deadline_ns,
		  struct port_error *err);

/* Processes that did not reply in time; they get no further request. Zeroed is empty. */
#define PERF_MAP_UNRESPONSIVE_MAX 16
struct perf_map_unresponsive {
	struct {
		pid_t pid;
		uint64_t start_ticks;
	} v[PERF_MAP_UNRESPONSIVE_MAX];
	unsigned n; /* number ever added; the oldest are overwritten */
};

/* Counts of the marks in a directory. */
struct perf_map_sweep_counts {
	unsigned removed; /* maps switched off and removed */
	unsigned in_use;  /* marks that a living profcpu locks */
	/*
	 * Marks that could not be undone. error is from one of them, of a living process if
	 * possible.
	 */
	unsigned left;
	int error;
	pid_t pid; /* that process; 0: none */
};

/*
 * Undoes what killed profcpus left in the directory of pid's maps; for our own PID, /tmp. Skips
 * marks that a living profcpu locks or another user made. Skips marks whose process is not visible
 * or has its maps elsewhere. Stops at deadline_ns. silent may be NULL. 0, also if marks are left;
 * errors of target_dir_open and target_dir_each.
 */
int perf_map_sweep(struct opener *o, pid_t pid, uint64_t deadline_ns,
		   struct perf_map_unresponsive *silent, struct perf_map_sweep_counts *ret_swept);

/* Does the same for a single mark, in a directory of user uid. */
void perf_map_sweep_mark(struct opener *o, int dir_fd, uid_t uid, const char *name,
			 uint64_t deadline_ns, struct perf_map_sweep_counts *ret_swept);

/*
 * The directory of a process's perf maps, in its root: DOTNET_PerfMapJitDumpPath or /tmp. 0;
 * -ENOTSUP: not an absolute path.
 */
int perf_map_dir(pid_t pid, char *buf, size_t cap);

#endif
