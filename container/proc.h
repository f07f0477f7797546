/*
 * Processes as /proc shows them: lists of processes and threads, status, start times, small files.
 * proc_text.h parses the texts. Source: proc(5).
 */
#ifndef CONTAINER_PROC_H
#define CONTAINER_PROC_H

#include "container/proc_text.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_FILE_MAX ((size_t)1 << 20) /* bytes of status, stat, cgroup and other small files */

/*
 * Calls fn for each PID in /proc. Stops when fn returns non-zero, and returns that. 0; -errno.
 */
int proc_each_pid(int (*fn)(void *ctx, pid_t pid), void *ctx);
/*
 * The same for each name in the directory dir_path that is a number. The directory belongs to pid,
 * such as /proc/PID/task; 0: it is /proc. -ESRCH: no such process; -ETIME: no answer (ask.h).
 */
int proc_each_numeric_name(pid_t pid, const char *dir_path, int (*fn)(void *ctx, pid_t n),
			   void *ctx);
/*
 * The next such name. Opens the directory if *dir is NULL; the caller closes it. 1; 0: no more;
 * -ESRCH; -errno. It can wait for ever, so call it from ask().
 */
int proc_next_number(const char *path, DIR **dir, pid_t *ret_number);

/*
 * Reads a small file of /proc/PID, or of /proc/PID/task/TID if tid is not 0, and adds a NUL. The
 * caller frees *ret_text. 0; -ESRCH: there is no such process; -ENOENT: it has no such file;
 * -EACCES; -E2BIG; -ETIME: no answer (ask.h); -errno.
 */
int proc_read(pid_t pid, pid_t tid, const char *name, size_t max_bytes, char **ret_text,
	      size_t *ret_len);

/*
 * Reads the start of the file at path, which belongs to pid, as a text with a NUL: at most cap - 1
 * bytes, or PROC_START_BYTES. Returns its length; -ETIME: no answer (ask.h); -errno.
 */
#define PROC_START_BYTES 1024
ssize_t proc_read_path(pid_t pid, const char *path, char *text, size_t cap);

/*
 * Opens the file at path, which belongs to pid, for reading. Asks only if the kernel does not have
 * its names in memory. 0; -ETIME: no answer (ask.h); -errno.
 */
int proc_open_path(pid_t pid, const char *path, int *ret_fd);

/*
 * Reads a link of /proc/PID, such as "exe", as a text with a NUL, cut to cap bytes. Errors as
 * readlink(2); -ETIME: see ask.h.
 */
int proc_link(pid_t pid, const char *name, char *text, size_t cap);

/*
 * Limits of reading /proc/PID/maps. A process can make this list long: 65,530 maps of files whose
 * paths have 16 kB there are 1 GB, which takes seconds. It can also delay each read, with changes
 * of its maps.
 */
#define PROC_MAPS_SMALL ((size_t)4 << 20) /* bytes; about 40,000 usual lines, read in 10 ms */
#define PROC_MAPS_MAX ((size_t)32 << 20)  /* about 320,000 usual lines */
struct proc_maps_limit {
	size_t max_bytes;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
};

/*
 * Calls fn for each piece of /proc/PID/maps: len bytes of whole lines, then a NUL. fn may change
 * them. Stops when fn returns non-zero, and returns that. Needs little memory for any number of
 * maps. 0; -E2BIG: over max_bytes, or a line of 32 KiB; -ETIMEDOUT; errors of proc_read.
 */
int proc_scan_maps(pid_t pid, const struct proc_maps_limit *limit,
		   int (*fn)(void *ctx, char *lines, size_t len), void *ctx);

/*
 * Reads /proc/PID/maps whole, in at most 2 s: at most PROC_MAPS_MAX, and at most an eighth of the
 * memory that is left. -E2BIG, -ETIMEDOUT: over a limit; otherwise as proc_read.
 */
int proc_read_maps(pid_t pid, char **ret_text);

/* Reads /proc/PID/status. 0, -ESRCH, -EACCES, -EBADMSG, -errno. */
int proc_status(pid_t pid, struct proc_status *ret_status);

/*
 * Reads the start time of a process: field 22 of /proc/PID/stat, in clock ticks since boot. PID and
 * start time together identify a process for ever. The name of a .NET diagnostic port contains
 * both. 0, -ESRCH, -EBADMSG, -errno.
 */
int proc_start_ticks(pid_t pid, uint64_t *ret_ticks);

/* Returns the age in ns at boot_ns of CLOCK_BOOTTIME; 0 for a start time in the future. */
uint64_t proc_age_ns(uint64_t start_ticks, uint64_t boot_ns);

/*
 * Returns the start time of a process in CLOCK_MONOTONIC; now_ns if it is not known. now_ns is the
 * present time of that clock.
 */
uint64_t proc_start_ns(pid_t pid, uint64_t now_ns);

/*
 * Returns whether /proc belongs to our PID namespace. Then its numbers are those that system calls
 * use.
 */
bool proc_is_own_namespace(void);

#endif
