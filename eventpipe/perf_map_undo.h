/* Takes back what profcpu did to a process's perf map: by the last one that used it, or after one that was killed. */
#ifndef EVENTPIPE_PERF_MAP_UNDO_H
#define EVENTPIPE_PERF_MAP_UNDO_H

#include "eventpipe/perf_map_mark.h"
#include "eventpipe/port.h"

#include <stdint.h>
#include <sys/types.h>

/* What is to be undone, with the mark locked exclusively. */
struct perf_map_undo {
	int dir_fd;
	struct perf_map_mark mark;
	struct target_file mark_file;
	pid_t pid; /* the process in our PID namespace; 0: it has ended */
	bool replaced; /* it runs another program */
};

/* Switches the map off where the process lives, removes it, what belongs to it and then the mark. What a later process or program
 * of the same number writes is its user's and stays, though it may be the very file: a runtime overwrites the one that is there. 0; errors of port_command, then all of it stays;
 * -EACCES, -EPERM, -EROFS: something could not be removed. */
int perf_map_undo(struct opener *o, const struct perf_map_undo *undo, uint64_t deadline_ns, struct port_error *err);

/* Processes that gave no answer in time: while one is in here it is not asked again. Zeroed: none. */
#define PERF_MAP_SILENT_MAX 16
struct perf_map_silent {
	struct {
		pid_t pid;
		uint64_t start_ticks;
	} v[PERF_MAP_SILENT_MAX];
	unsigned n; /* that came; of more the first are forgotten */
};

/* What became of the marks that were found in a directory. */
struct perf_map_swept {
	unsigned removed; /* maps switched off and removed */
	unsigned in_use; /* marks that a living profcpu holds */
	unsigned left; /* could not be undone, one of them for error: of a living process if there is one */
	int error;
	pid_t pid; /* that process; 0: none */
};

/*
 * Undoes what a killed profcpu left in the directory where pid's maps are; with our own PID in /tmp. Left alone are marks that a living
 * profcpu holds, those of strangers, of processes that cannot be seen from here or have their maps elsewhere, and what comes after
 * deadline_ns. silent may be NULL. 0 also where something is left; errors of target_dir_open and target_dir_each.
 */
int perf_map_sweep(struct opener *o, pid_t pid, uint64_t deadline_ns, struct perf_map_silent *silent, struct perf_map_swept *ret_swept);

/* The same with one mark alone, in a directory of uid's. */
void perf_map_sweep_mark(struct opener *o, int dir_fd, uid_t uid, const char *name, uint64_t deadline_ns, struct perf_map_swept *ret_swept);

/* The directory of a process's perf maps, in its root: DOTNET_PerfMapJitDumpPath or /tmp. 0; -ENOTSUP: not an absolute path. */
int perf_map_dir(pid_t pid, char *buf, size_t cap);

#endif
