#include "profcpu/post/outdir.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define OUTDIR_PARENT "profilings"
#define OUTDIR_TRIES 1000
#define OUTDIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static int outdir_failed(const char *path, int error)
{
	const char *remedy = remedy_for(error);

	log_error("cannot make the output directory %s: %s%s", path, strerror(-error),
		  *remedy ? remedy : "; choose one with -o");
	return error;
}

/*
 * Refuses a parent of another user, who could put links in the place of our files. In /tmp, for
 * example, anybody may have made it. The owner of the working directory is trusted, because he can
 * do that anyway.
 */
static int outdir_check_owner(int fd)
{
	struct stat here, parent;

	if (stat(".", &here) || fstat(fd, &parent))
		return outdir_failed(OUTDIR_PARENT, -errno);
	if (!parent.st_uid || parent.st_uid == geteuid() || parent.st_uid == here.st_uid)
		return 0;
	log_error("cannot write to %s: user %lu owns it and could replace the outputs; choose "
		  "another directory with -o",
		  OUTDIR_PARENT, (unsigned long)parent.st_uid);
	return -EPERM;
}

/* Opens the parent. If it is a link, opens the target of the same link whose owner was checked. */
static int outdir_open_parent(int *ret_fd)
{
	AUTO_CLOSE int fd = open(OUTDIR_PARENT, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char target[PATH_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return outdir_failed(OUTDIR_PARENT, -errno);
	if (outdir_check_owner(fd))
		return -EPERM;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

		target[n < 0 ? 0 : n] = 0;
		*ret_fd = n < 0 ? -1 : open(target, OUTDIR_FLAGS);
	} else {
		*ret_fd = openat(fd, ".", OUTDIR_FLAGS);
	}
	return *ret_fd < 0 ? outdir_failed(OUTDIR_PARENT, -errno) : 0;
}

/*
 * Locks the directory: two writers would mix their files. Goes on unlocked if the file system has
 * no locks.
 */
static int outdir_lock(int fd, const char *shown)
{
	if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return 0;
	log_error(
		"cannot write to %s: another profcpu writes there; wait for it, or choose another "
		"directory with -o",
		shown);
	return -EBUSY;
}

/* Takes over fd and path. On entry fd may be -1, with errno, and path may be NULL. */
static int outdir_take(int fd, char *path, const char *shown, struct outdir *ret_dir)
{
	struct outdir dir = {fd, path};
	int r = fd < 0 ? -errno : !path ? -ENOMEM : faccessat(fd, ".", W_OK | X_OK, 0) ? -errno : 0;

	if (r)
		outdir_failed(shown, r);
	else
		r = outdir_lock(fd, shown);
	if (r)
		post_outdir_release(&dir);
	else
		*ret_dir = dir;
	return r;
}

/* Makes a directory with a number in its name if another recording began in the same second. */
static int outdir_make_new(struct outdir *ret_dir)
{
	AUTO_CLOSE int parent_fd = -1;
	char name[48];
	int r = file_mkdirs(OUTDIR_PARENT);

	if (r)
		return outdir_failed(OUTDIR_PARENT, r);
	r = outdir_open_parent(&parent_fd);
	if (r)
		return r;
	clock_dir_name(clock_realtime_ns(), name, sizeof(name));
	size_t len = strlen(name);

	for (int i = 1; mkdirat(parent_fd, name, 0777); i++) {
		if (errno != EEXIST || i == OUTDIR_TRIES)
			return outdir_failed(OUTDIR_PARENT, -errno);
		snprintf(name + len, sizeof(name) - len, "_%d", i + 1);
	}
	char *path = file_join(OUTDIR_PARENT, name);

	return outdir_take(openat(parent_fd, name, OUTDIR_FLAGS | O_NOFOLLOW), path, OUTDIR_PARENT,
			   ret_dir);
}

/* Makes only the last directory of the path, so that a typing error fills no wrong disk. */
static int outdir_make_wanted(const char *wanted)
{
	if (!mkdir(wanted, 0777) || errno == EEXIST)
		return 0;
	if (errno != ENOENT || !*wanted)
		return outdir_failed(wanted, -errno);
	log_error("cannot make the output directory %s: its parent does not exist; make that first "
		  "(mkdir -p), or choose another one with -o",
		  wanted);
	return -ENOENT;
}

int post_outdir_make(const char *wanted, struct outdir *ret_dir)
{
	if (!wanted)
		return outdir_make_new(ret_dir);
	if (!strcmp(wanted, "-")) {
		log_error("-o: not stdout, but a directory is needed, because the outputs are "
			  "several files");
		return -EINVAL;
	}
	int r = outdir_make_wanted(wanted);

	if (r)
		return r;
	char *path = strdup(wanted);

	return outdir_take(open(wanted, OUTDIR_FLAGS), path, wanted, ret_dir);
}

int post_outdir_use(int dir_fd, const char *path, struct outdir *ret_dir)
{
	char *copy = strdup(path);

	return outdir_take(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), copy, path, ret_dir);
}

static void outdir_remove(const char *path)
{
	if (!rmdir(path) && !strncmp(path, OUTDIR_PARENT "/", strlen(OUTDIR_PARENT "/")))
		rmdir(OUTDIR_PARENT);
}

void post_outdir_remove_empty(const struct outdir *dir)
{
	struct stat open, named;

	if (dir->fd >= 0 && !fstat(dir->fd, &open) && !stat(dir->path, &named) &&
	    open.st_dev == named.st_dev && open.st_ino == named.st_ino)
		outdir_remove(dir->path);
}

void post_outdir_release(struct outdir *dir)
{
	cleanup_close(&dir->fd);
	free(dir->path);
	*dir = OUTDIR_NONE;
}
