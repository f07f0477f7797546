/* Notices signals and the ends of processes; record.c decides what ends the recording. */
#ifndef PROFCPU_RECORD_WATCH_H
#define PROFCPU_RECORD_WATCH_H

#include "base/vec.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record_watch {
	sigset_t old_mask;
	bool masked;
	int epoll_fd, signal_fd, sampler_fd; /* -1: none */
	VEC(int) pidfds;                     /* of processes that have not ended */
	VEC(pid_t) polled;                   /* processes without a pidfd: polled with kill(0) */
};

#define RECORD_WATCH_NONE ((struct record_watch){.epoll_fd = -1, .signal_fd = -1, .sampler_fd = -1})

/*
 * Returns the signals that end a recording, which is then saved. SIGXCPU comes from RLIMIT_CPU,
 * SIGQUIT from containers with this STOPSIGNAL and from Ctrl-\, and real-time signals from systemd.
 * All others that end a program are for crashes and bad writes.
 */
sigset_t record_watch_signals(void);

/*
 * Blocks these signals and makes them readable. Those that are ignored, as SIGHUP under nohup, stay
 * ignored, except SIGINT, SIGQUIT and SIGTERM. 0 or -errno.
 */
int record_watch_new(struct record_watch *w);

/*
 * Ignores SIGPIPE and SIGXFSZ until this program ends, so that a failed write does not end the
 * recording. Call it after the command was forked, which must not inherit this.
 */
void record_watch_survive_writes(void);

/* Restores the signal mask, so that the next SIGINT ends this program. */
void record_watch_unmask(struct record_watch *w);
void record_watch_free(struct record_watch *w);

/* Wake record_watch_wait when the descriptor is readable. 0 or -errno. */
int record_watch_sampler(struct record_watch *w, int fd);
int record_watch_fd(struct record_watch *w, int fd);

/* Watches for the end of a process; one that has ended is ignored. 0 or -ENOMEM. */
int record_watch_process(struct record_watch *w, pid_t pid);

/*
 * After one SIGHUP, ignores others, because the kernel and the shell both send one. So is SIGXCPU,
 * because the kernel repeats it each second. A signal handler may call it.
 */
void record_watch_ignore_more(int number);

/* Returns the pending signal or 0, without waiting, and calls record_watch_ignore_more. */
int record_watch_signal(struct record_watch *w);

/* Waits at most timeout_ms. *ret_signal: as record_watch_signal. 0 or -errno. */
int record_watch_wait(struct record_watch *w, int timeout_ms, int *ret_signal);

/* Processes that were watched and have not ended. */
size_t record_watch_alive(const struct record_watch *w);

#endif
