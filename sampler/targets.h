/*
 * Target processes and their threads, read from /proc. sampler_open.c opens their events, also for
 * those that begin meanwhile.
 */
#ifndef SAMPLER_TARGETS_H
#define SAMPLER_TARGETS_H

#include "base/pidset.h"
#include "base/vec.h"

#include <sys/types.h>

struct targets {
	struct pidset pids; /* chosen processes and their descendants */
	VEC(pid_t) list;    /* the same, in the order of adding */
};

struct target_thread {
	pid_t pid, tid;
};
struct target_threads {
	struct target_thread *v;
	size_t len, cap;
};

int targets_new(struct targets *ret_targets); /* 0 or -ENOMEM */
void targets_free(struct targets *t);

/* Adds one process, once. 0 or -ENOMEM. */
int targets_add(struct targets *t, pid_t pid);

/* Adds all living descendants of the processes in the set. proc: "/proc". 0; -ENOMEM; -errno (/proc
 * is not readable). */
int targets_add_children(struct targets *t, const char *proc);

/* Finds the process of a thread id or process id. 0; -ESRCH; -errno. */
int targets_tgid(pid_t pid, const char *proc, pid_t *ret_tgid);

/* Appends the threads of one process. 0; -ESRCH; -ENOMEM; -errno. */
int targets_threads(pid_t pid, const char *proc, struct target_threads *threads);

/* Appends all processes of proc, in directory order. 0; -ENOMEM; -errno. */
int targets_all(const char *proc, struct target_threads *processes);

#endif
