/* What ends a recording: signals and the end of the targets. */
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
	int epoll_fd, signal_fd, sampler_fd; /* -1: none; the last is the sampler's */
	VEC(int) pidfds;                     /* of processes that have not ended */
	VEC(pid_t) polled;                   /* processes without a pidfd: asked by kill(0) */
};

#define RECORD_WATCH_NONE ((struct record_watch){.epoll_fd = -1, .signal_fd = -1, .sampler_fd = -1})

/* Blocks SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP, and makes them readable. 0 or
 * -errno. */
int record_watch_new(struct record_watch *w);

/*
 * Until this program ends, a pipe without a reader and a file over RLIMIT_FSIZE are errors of
 * write(2) and not the end: messages to nobody cost no recording. To be called when the command was forked, which is
 * not to inherit it.
 */
void record_watch_survive_writes(void);

/* Gives the signal mask back: the next SIGINT ends this program. */
void record_watch_unmask(struct record_watch *w);
void record_watch_free(struct record_watch *w);

/* 0 or -errno. */
int record_watch_sampler(struct record_watch *w, int fd);
int record_watch_switches(struct record_watch *w, int fd);

/* The end of this process is watched for; of one that has ended already there is nothing to watch. 0 or -ENOMEM. */
int record_watch_process(struct record_watch *w, pid_t pid);

/* The signal that came, else 0, without waiting. After a SIGHUP further ones are ignored: the
 * kernel and the shell both send one. */
int record_watch_signal(struct record_watch *w);

/* Waits at most timeout_ms. *ret_signal: as record_watch_signal. 0 or -errno. */
int record_watch_wait(struct record_watch *w, int timeout_ms, int *ret_signal);

/* Processes that were watched and have not ended. */
size_t record_watch_alive(const struct record_watch *w);

#endif
