/*
 * What the scheduler itself counts of a thread: how long it ran, how long it waited for a CPU, how often it got one. Read from
 * /proc/TID/schedstat, at no cost for the thread. Format: Linux Documentation/scheduler/sched-stats.rst, fs/proc/base.c
 * (proc_pid_schedstat).
 *
 * Of a thread that runs right now the kernel has brought run_ns up to date at its last tick (10 ms at most), of one that waits for a CPU
 * wait_ns lacks that wait until its end. Sums are of the thread's life; differences of two reads are what is of use.
 */
#ifndef SAMPLER_SCHEDSTAT_H
#define SAMPLER_SCHEDSTAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct schedstat {
	uint64_t run_ns, wait_ns; /* on a CPU; ready to run and without one */
	uint64_t count; /* times that it got a CPU */
};

/* The text of the file. 0 or -EBADMSG. */
int schedstat_parse(const char *text, struct schedstat *ret_stat);

struct schedstat_reader;

#define SCHEDSTAT_SPARE 512 /* descriptors that are left to all else: without theirs images are not read at all */

/*
 * proc: NULL: "/proc"; borrowed. Keeps the files of the first `descriptors` threads open, as opening costs six times what reading does,
 * while so many are left. 0;
 * -ENOENT (this kernel does not count, or proc is none); -ENOMEM; -errno.
 */
int schedstat_new(const char *proc, size_t descriptors, struct schedstat_reader **ret_reader);
void schedstat_free(struct schedstat_reader *r);

/* Of a thread in the PID namespace of proc. 0; -ESRCH (it has ended); -EACCES; -EBADMSG; -errno. */
int schedstat_read(struct schedstat_reader *r, pid_t tid, struct schedstat *ret_stat);

/* It ended: its descriptor is for others. */
void schedstat_forget(struct schedstat_reader *r, pid_t tid);

#endif
