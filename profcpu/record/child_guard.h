/*
 * Ends a command that waits for us, if we are killed. A .NET runtime that starts suspended waits
 * for its resume for ever, and nobody else knows that.
 *
 * It is a process of its own, which waits for the end of a socket. PR_SET_PDEATHSIG would not do:
 * the command itself would have to take it back after the resume, and programs with more rights
 * lose it at their exec.
 */
#ifndef PROFCPU_RECORD_CHILD_GUARD_H
#define PROFCPU_RECORD_CHILD_GUARD_H

#include <sys/types.h>

/* A zeroed struct means no guard. */
struct child_guard {
	pid_t pid;
	int fd; /* our end of the socket */
};

/*
 * Begins to guard a child of ours that has not been waited for. Call it before the child executes
 * its program. 0 or -errno.
 */
int child_guard_new(pid_t command, struct child_guard *ret_guard);

/* Guards one more process: a runtime in a child of the command. */
void child_guard_add(struct child_guard *g, pid_t pid);

/* Ends the guard, and leaves the processes alone. */
void child_guard_end(struct child_guard *g);

#endif
