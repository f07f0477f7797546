#include "profcpu/record/child.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "container/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the child, so it calls only functions that are safe after fork. */
static void __attribute__((noreturn))
child_main(char *const *argv, int go_fd, int error_fd, const sigset_t *mask)
{
	char byte;
	ssize_t n;
	int error;

	do
		n = read(go_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127); /* the recorder gave up */
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	n = write(error_fd, &error, sizeof(error));
	_exit(n == (ssize_t)sizeof(error) ? 127 : 126);
}

int record_child_fork(struct record_command *c, char *const *argv, const sigset_t *mask)
{
	int go[2], error[2];

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(error, O_CLOEXEC)) {
		int r = -errno;

		close(go[0]);
		close(go[1]);
		return r;
	}
	pid_t pid = fork();
	int r = pid < 0 ? -errno : 0;

	if (!pid) {
		close(go[1]);
		close(error[0]);
		child_main(argv, go[0], error[1], mask);
	}
	close(go[0]);
	close(error[1]);
	if (r) {
		close(go[1]);
		close(error[0]);
		return r;
	}
	*c = (struct record_command){.pid = pid, .go_fd = go[1], .error_fd = error[0]};
	return 0;
}

static void wait_for(struct record_command *c, int flags)
{
	siginfo_t info = {0};
	pid_t pid;

	if (c->opener && !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT | flags) &&
	    info.si_pid)
		opener_note_end(c->opener, c->pid);
	do
		pid = waitpid(c->pid, &c->status, flags);
	while (pid < 0 && errno == EINTR);
	if (pid == c->pid)
		c->ended = true;
	if (pid < 0) { /* SIGCHLD is ignored, so the kernel discarded the status */
		c->ended = true;
		c->status = 0;
	}
}

int record_child_go(struct record_command *c)
{
	AUTO_CLOSE int go_fd = c->go_fd, error_fd = c->error_fd;
	int error = 0;
	ssize_t n;

	c->go_fd = c->error_fd = -1;
	if (write(go_fd, "", 1) != 1)
		return -EIO;
	do /* read ends when exec closes the child's end of the pipe */
		n = read(error_fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(error))
		return 0;
	wait_for(c, 0);
	return -error;
}

bool record_child_ended(struct record_command *c)
{
	if (!c->ended)
		wait_for(c, WNOHANG);
	return c->ended;
}

int record_child_exit_status(int wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
				      : EXIT_SIGNALED + WTERMSIG(wait_status);
}

int record_child_signal(int number)
{
	return number == SIGINT || number == SIGHUP ? number : SIGTERM;
}

void record_child_release(struct record_command *c)
{
	if (!c->pid || c->go_fd < 0)
		return;
	close(c->go_fd);
	close(c->error_fd);
	c->go_fd = c->error_fd = -1;
	wait_for(c, 0);
}
