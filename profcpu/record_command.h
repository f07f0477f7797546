/* A command that is started stopped, so that it can be recorded from its first instruction. */
#ifndef PROFCPU_RECORD_COMMAND_H
#define PROFCPU_RECORD_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* A zeroed struct is no command. */
struct record_command {
	pid_t pid;           /* 0: none */
	int go_fd, error_fd; /* to the child, from the child; -1 once used */
	bool ended;
	int status; /* of waitpid, with ended */
};

/* Forks; the child waits with the signal mask `mask`. 0 or -errno. */
int record_command_fork(struct record_command *c, char *const *argv, const sigset_t *mask);

/* Lets it execute its program. 0; -errno of the exec (the child has then ended and is waited for).
 */
int record_command_go(struct record_command *c);

/* Whether it has ended; collects its status without waiting. */
bool record_command_ended(struct record_command *c);

/* Ends a child that still waits for its go, and closes the pipes. A started program goes on
 * running. */
void record_command_release(struct record_command *c);

#endif
