#include "profcpu/record/child_guard.h"

#include "base/file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* The descriptors of the guard. Those of processes cannot mean a later one of the same number. */
enum { GUARD_SOCKET, GUARD_COMMAND, GUARD_MORE };

#define GUARD_NONE 0 /* message: nothing is left to guard. Others are process ids. */

static void guard_kill(int pidfd)
{
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* Runs in the guard, so it calls only functions that are safe after fork. */
static void __attribute__((noreturn)) guard_main(int socket_fd, int command_fd)
{
	pid_t pid = GUARD_NONE;
	sigset_t all;
	ssize_t n;

	/* A signal to the process group, as Ctrl-C sends, is not for the guard. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "profcpu-guard");
	/* A shell waits until the pipes of its commands are closed. */
	if (dup2(socket_fd, GUARD_SOCKET) < 0 || dup2(command_fd, GUARD_COMMAND) < 0)
		_exit(EXIT_FAILURE);
	file_close_from(GUARD_MORE);
	int more = -1;

	do {
		n = recv(GUARD_SOCKET, &pid, sizeof(pid), MSG_WAITALL);
		if (n == sizeof(pid) && pid != GUARD_NONE && more < 0)
			more = (int)syscall(SYS_pidfd_open, pid, 0);
	} while (n == sizeof(pid) ? pid != GUARD_NONE : n < 0 && errno == EINTR);
	if (n == sizeof(pid))
		_exit(EXIT_SUCCESS);
	guard_kill(GUARD_COMMAND);
	guard_kill(more);
	_exit(EXIT_SUCCESS);
}

int child_guard_new(pid_t command, struct child_guard *ret_guard)
{
	/* While the number is certainly that of our child. */
	int fds[2], command_fd = (int)syscall(SYS_pidfd_open, command, 0);
	int r = command_fd < 0 ? -errno : 0;

	if (r)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		r = -errno;
		close(command_fd);
		return r;
	}
	pid_t pid = fork();

	if (!pid) {
		close(fds[1]);
		guard_main(fds[0], command_fd);
	}
	r = pid < 0 ? -errno : 0;
	close(fds[0]);
	close(command_fd);
	if (r)
		close(fds[1]);
	else
		*ret_guard = (struct child_guard){pid, fds[1]};
	return r;
}

static void guard_tell(const struct child_guard *g, pid_t pid)
{
	(void)send(g->fd, &pid, sizeof(pid), MSG_NOSIGNAL);
}

void child_guard_add(struct child_guard *g, pid_t pid)
{
	if (g->pid && pid > 0)
		guard_tell(g, pid);
}

void child_guard_end(struct child_guard *g)
{
	if (!g->pid)
		return;
	guard_tell(g, GUARD_NONE);
	close(g->fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*g = (struct child_guard){0};
}
