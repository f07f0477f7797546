/*
 * Starts a command in two steps, so that recording begins at its first instruction. Notices its
 * end. cmd_collect.c makes its exit status that of profcpu.
 */
#ifndef PROFCPU_RECORD_CHILD_H
#define PROFCPU_RECORD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct opener;

/* A zeroed struct means no command. */
struct record_command {
	pid_t pid;             /* 0: none */
	struct opener *opener; /* learns of its end (opener_note_end); borrowed, may be NULL */
	int go_fd, error_fd;   /* pipes to and from the child; -1 after use */
	bool ended;
	int status; /* from waitpid; valid with ended */
};

/* Forks; the child waits with the signal mask `mask`. 0 or -errno. */
int record_child_fork(struct record_command *c, char *const *argv, const sigset_t *mask);

/* Lets the child execute its program. 0, or -errno of the exec; the child has then ended. */
int record_child_go(struct record_command *c);

/* Whether the command has ended. Sets its status, without waiting. */
bool record_child_ended(struct record_command *c);

/* The exit status with which a command ended, as shells give it. wait_status: from waitpid. */
int record_child_exit_status(int wait_status);

/*
 * The signal for a command if profcpu gets this one. Others than SIGINT and SIGHUP have a meaning
 * only for us: the command may use SIGUSR1 for something else.
 */
int record_child_signal(int number);

/* Ends a child that has not executed its program, and closes the pipes. A started program
 * continues.
 */
void record_child_release(struct record_command *c);

#endif
