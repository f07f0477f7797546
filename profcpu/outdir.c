#include "profcpu/outdir.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "profcpu/mend.h"

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
	const char *mend = mend_of(error);

	log_error("cannot make a directory for the outputs at %s: %s%s", path, strerror(-error),
		  *mend ? mend : "; choose one with -o");
	return error;
}

/*
 * In a directory where others may write, such as /tmp, somebody may have made the parent, and could then put a link in the
 * place of what is made in it. Whoever owns the working directory can do that anyhow.
 */
static int outdir_check_owner(int fd)
{
	struct stat here, parent;

	if (stat(".", &here) || fstat(fd, &parent))
		return outdir_failed(OUTDIR_PARENT, -errno);
	if (!parent.st_uid || parent.st_uid == geteuid() || parent.st_uid == here.st_uid)
		return 0;
	log_error("cannot write to %s: it belongs to user %lu, who could put other files in their place; choose another "
		  "directory with -o",
		  OUTDIR_PARENT, (unsigned long)parent.st_uid);
	return -EPERM;
}

/* The parent, or what a link in its place leads to: the very link whose owner was looked at. */
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

/* Two that write into one directory would mix what they write. Where the file system has no locks there is none. */
static int outdir_lock(int fd, const char *shown)
{
	if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return 0;
	log_error("cannot write to %s: another profcpu is at work there; wait for it, or choose another directory with -o", shown);
	return -EBUSY;
}

/* Takes over fd and path; either may be missing, errno says why. */
static int outdir_take(int fd, char *path, const char *shown, struct outdir *ret_dir)
{
	struct outdir dir = {fd, path};
	int r = fd < 0 ? -errno : !path ? -ENOMEM : faccessat(fd, ".", W_OK | X_OK, 0) ? -errno : 0;

	if (r)
		outdir_failed(shown, r);
	else
		r = outdir_lock(fd, shown);
	if (r)
		outdir_release(&dir);
	else
		*ret_dir = dir;
	return r;
}

/* One directory a second is made, and more when several recordings begin in one. */
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

	return outdir_take(openat(parent_fd, name, OUTDIR_FLAGS | O_NOFOLLOW), path, OUTDIR_PARENT, ret_dir);
}

/* Only the last directory of the path: a mistyped one is to fill no disk that was not meant. */
static int outdir_make_wanted(const char *wanted)
{
	if (!mkdir(wanted, 0777) || errno == EEXIST)
		return 0;
	if (errno != ENOENT || !*wanted)
		return outdir_failed(wanted, -errno);
	log_error("cannot make a directory for the outputs at %s: the directory that it is to be made in is not there; make "
		  "that first (mkdir -p), or choose another one with -o",
		  wanted);
	return -ENOENT;
}

int outdir_make(const char *wanted, struct outdir *ret_dir)
{
	if (!wanted)
		return outdir_make_new(ret_dir);
	if (!strcmp(wanted, "-")) {
		log_error("-o takes a directory; outputs are several files and cannot go to stdout");
		return -EINVAL;
	}
	int r = outdir_make_wanted(wanted);

	if (r)
		return r;
	char *path = strdup(wanted);

	return outdir_take(open(wanted, OUTDIR_FLAGS), path, wanted, ret_dir);
}

int outdir_of(int dir_fd, const char *path, struct outdir *ret_dir)
{
	char *copy = strdup(path);

	return outdir_take(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), copy, path, ret_dir);
}

static void outdir_remove(const char *path)
{
	if (!rmdir(path) && !strncmp(path, OUTDIR_PARENT "/", strlen(OUTDIR_PARENT "/")))
		rmdir(OUTDIR_PARENT);
}

void outdir_remove_empty(const struct outdir *dir)
{
	struct stat open, named;

	if (dir->fd >= 0 && !fstat(dir->fd, &open) && !stat(dir->path, &named) && open.st_dev == named.st_dev &&
	    open.st_ino == named.st_ino)
		outdir_remove(dir->path);
}

void outdir_release(struct outdir *dir)
{
	cleanup_close(&dir->fd);
	free(dir->path);
	*dir = OUTDIR_NONE;
}
