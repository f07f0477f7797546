/*
 * Scheduler counters of a thread, read from /proc/TID/schedstat at no cost for the thread. They
 * cover its whole life; only differences of two reads are used. Format: Linux
 * Documentation/scheduler/sched-stats.rst; fs/proc/base.c, proc_pid_schedstat.
 *
 * Counters lag. While a thread runs, run_ns is up to one tick (10 ms) old. While it waits for a
 * CPU, wait_ns lacks the present wait.
 */
#ifndef SAMPLER_OFFCPU_SCHEDSTAT_H
#define SAMPLER_OFFCPU_SCHEDSTAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct schedstat {
	uint64_t run_ns, wait_ns; /* on a CPU; runnable without a CPU */
	uint64_t count;           /* times that it got a CPU */
};

/* The text of the file. 0 or -EBADMSG. */
int schedstat_parse(const char *text, struct schedstat *ret_stat);

struct schedstat_reader;

/* Descriptors left for other uses; without them images are not read at all. */
#define SCHEDSTAT_RESERVED_DESCRIPTORS 512

/*
 * Opens a reader. proc NULL: "/proc"; borrowed. It keeps the files of the first `descriptors`
 * threads open while descriptors suffice, because opening costs six times as much as reading.
 * Errors: -ENOENT (the kernel has no schedstat), -ENOMEM, -errno.
 */
int schedstat_new(const char *proc, size_t descriptors, struct schedstat_reader **ret_reader);
void schedstat_free(struct schedstat_reader *r);

/*
 * Reads the counters of a thread in the PID namespace of proc. 0; -ESRCH (it has ended); -EACCES;
 * -EBADMSG; -errno.
 */
int schedstat_read(struct schedstat_reader *r, pid_t tid, struct schedstat *ret_stat);

/* Closes the descriptor of a thread that has ended. */
void schedstat_forget(struct schedstat_reader *r, pid_t tid);

#endif
