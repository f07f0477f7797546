#include "base/temp_dir.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct temp_dir {
	char *path;
	int fd;
	pid_t remover; /* 0: there is none, so only temp_dir_remove removes */
	int alive_fd;  /* the only writer of the pipe whose end tells remover to start */
};

/* The descriptors of the child. */
enum { REMOVER_PIPE, REMOVER_DIR, REMOVER_FDS };

static void temp_dir_remove_now(const char *path, int fd)
{
	file_remove_contents(fd);
	(void)rmdir(path);
}

/* Runs in the child, with all signals blocked. */
static void __attribute__((noreturn)) remover_main(const struct temp_dir *d, int pipe_fd)
{
	int dir_fd = fcntl(d->fd, F_DUPFD, REMOVER_FDS);
	char byte;

	/* A signal to the process group, as Ctrl-C sends, is not for this child. */
	setsid();
	prctl(PR_SET_NAME, "profcpu-remover");
	/* The shell waits until its pipes are closed. */
	if (dir_fd < 0 || dup2(pipe_fd, REMOVER_PIPE) < 0 || dup2(dir_fd, REMOVER_DIR) < 0)
		_exit(EXIT_FAILURE);
	file_close_from(REMOVER_FDS);
	while (read(REMOVER_PIPE, &byte, 1) < 0 && errno == EINTR)
		;
	temp_dir_remove_now(d->path, REMOVER_DIR);
	_exit(EXIT_SUCCESS);
}

/* Starts the child, while all signals are blocked. Without it, the directory stays after a signal.
 */
static void temp_dir_watch(struct temp_dir *d)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return;
	pid_t pid = fork();

	if (!pid) {
		/* A pipe that is above the other descriptors survives their replacement. */
		int pipe_fd = fcntl(fds[0], F_DUPFD, REMOVER_FDS);

		close(fds[1]);
		remover_main(d, pipe_fd);
	}
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return;
	}
	d->remover = pid;
	d->alive_fd = fds[1];
}

static int temp_dir_open(struct temp_dir *d, int *ret_fd)
{
	if (!mkdtemp(d->path))
		return -errno;
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*ret_fd = d->fd < 0 ? -1 : fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
	if (*ret_fd < 0) {
		int r = -errno;

		(void)rmdir(d->path);
		return r;
	}
	temp_dir_watch(d);
	return 0;
}

int temp_dir_make(const char *base, struct temp_dir **ret_dir, int *ret_fd)
{
	struct temp_dir *d = calloc(1, sizeof(*d));
	sigset_t all, before;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	d->path = file_join(base, "profcpu-XXXXXX");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = d->path ? temp_dir_open(d, ret_fd) : -ENOMEM;

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!r) {
		*ret_dir = d;
		return 0;
	}
	cleanup_close(&d->fd);
	free(d->path);
	free(d);
	return r;
}

void temp_dir_remove(struct temp_dir *d)
{
	if (!d)
		return;
	int status = -1;

	if (d->remover) {
		close(d->alive_fd);
		while (waitpid(d->remover, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (status)
		temp_dir_remove_now(d->path, d->fd);
	cleanup_close(&d->fd);
	free(d->path);
	free(d);
}
