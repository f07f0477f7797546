#include "base/temp_dir.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct temp_dir {
	char *path;
	pid_t remover; /* 0: there is none, so only temp_dir_remove removes */
	int alive_fd;  /* our end of the socket, whose end tells remover to start */
	int fd;        /* the directory, to remove its contents without remover */
};

/* The descriptors of the child. */
enum { REMOVER_SOCKET, REMOVER_FDS };

/* Opens a new directory; removes it if that fails. Returns its descriptor or -errno. */
static int temp_dir_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd;

	if (fd < 0)
		(void)rmdir(path);
	return r;
}

/* Removes what is in fd, because its name may belong to another directory now. */
static void temp_dir_remove_now(int fd, const char *path)
{
	file_remove_contents(fd);
	(void)rmdir(path);
}

/* Runs in the child, with all signals blocked. */
static void __attribute__((noreturn)) remover_main(const struct temp_dir *d, int socket_fd)
{
	char byte;

	/* A signal to the process group, as Ctrl-C sends, is not for this child. */
	setsid();
	prctl(PR_SET_NAME, "profcpu-remover");
	/* A shell waits until the pipes of its commands are closed. */
	if (dup2(socket_fd, REMOVER_SOCKET) < 0)
		_exit(EXIT_FAILURE);
	file_close_from(REMOVER_FDS);
	int fd = mkdtemp(d->path) ? temp_dir_open(d->path) : -errno;
	int error = fd < 0 ? fd : 0;
	int lost = file_write_all(REMOVER_SOCKET, &error, sizeof(error));

	if (error)
		_exit(EXIT_FAILURE);
	if (!lost)
		lost = file_write_all(REMOVER_SOCKET, d->path, strlen(d->path));
	while (!lost && read(REMOVER_SOCKET, &byte, 1) < 0 && errno == EINTR)
		;
	temp_dir_remove_now(fd, d->path);
	_exit(EXIT_SUCCESS);
}

/*
 * Starts the child, which makes the directory: it never exists without the child. Returns 0, or
 * the -errno of mkdtemp; -ECHILD: there is no child.
 */
static int temp_dir_start(struct temp_dir *d)
{
	ssize_t bytes = (ssize_t)strlen(d->path);
	int fds[2], error;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -ECHILD;
	pid_t pid = fork();

	if (!pid) {
		close(fds[1]);
		remover_main(d, fds[0]);
	}
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return -ECHILD;
	}
	d->remover = pid;
	d->alive_fd = fds[1];
	if (recv(fds[1], &error, sizeof(error), MSG_WAITALL) != sizeof(error) ||
	    (!error && recv(fds[1], d->path, (size_t)bytes, MSG_WAITALL) != bytes))
		return -ECHILD;
	return error;
}

/* Ends the child, which removes the directory. False: there was none, or it failed. */
static bool temp_dir_end(struct temp_dir *d)
{
	int status = -1;

	if (!d->remover)
		return false;
	close(d->alive_fd);
	while (waitpid(d->remover, &status, 0) < 0 && errno == EINTR)
		;
	d->remover = 0;
	return !status;
}

/* Without a child, the directory stays after a signal. */
static int temp_dir_begin(struct temp_dir *d, int *ret_fd)
{
	int r = temp_dir_start(d);

	if (r == -ECHILD) {
		(void)temp_dir_end(d);
		r = mkdtemp(d->path) ? 0 : -errno;
	}
	if (r)
		return r;
	d->fd = temp_dir_open(d->path);
	if (d->fd < 0)
		return d->fd;
	int fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0) {
		r = -errno;
		temp_dir_remove_now(d->fd, d->path);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static void temp_dir_free(struct temp_dir *d)
{
	cleanup_close(&d->fd);
	free(d->path);
	free(d);
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
	int r = d->path ? temp_dir_begin(d, ret_fd) : -ENOMEM;

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!r) {
		*ret_dir = d;
		return 0;
	}
	(void)temp_dir_end(d);
	temp_dir_free(d);
	return r;
}

const char *temp_dir_path(const struct temp_dir *d)
{
	return d->path;
}

void temp_dir_remove(struct temp_dir *d)
{
	if (!d)
		return;
	if (!temp_dir_end(d))
		temp_dir_remove_now(d->fd, d->path);
	temp_dir_free(d);
}
