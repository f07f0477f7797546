/*
 * Runs a command whose stderr is a terminal without a reader: some hundred bytes fit, then it is
 * full. SIGUSR1 resumes reading. Exits with the command's status.
 *
 * usage: stalled_tty COMMAND ARG...
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM 700

static int fail(const char *what)
{
	perror(what);
	return 125;
}

static int fill(const char *tty, int master)
{
	char bytes[ROOM];
	int fd = open(tty, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return fail(tty);
	memset(bytes, '.', sizeof(bytes));
	while (write(fd, bytes, 1) == 1)
		;
	close(fd);
	return read(master, bytes, sizeof(bytes)) > 0 ? 0 : fail("read");
}

int main(int argc, char **argv)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), status;
	char bytes[4096];
	sigset_t set;

	if (argc < 2 || master < 0 || grantpt(master) || unlockpt(master))
		return fail("posix_openpt");
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY);

	if (slave < 0 || fill(ptsname(master), master))
		return fail("open");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid_t pid = fork();

	if (!pid) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		dup2(slave, STDERR_FILENO);
		close(slave);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	close(slave);
	printf("%d\n", pid);
	fflush(stdout);
	sigwait(&set, &status);
	while (read(master, bytes, sizeof(bytes)) > 0) /* EIO when the other side is closed */
		;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
