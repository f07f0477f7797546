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
 * Refuses a directory, or a link to one, of a user who could replace our files. In /tmp, for
 * example, anybody may have made it. The owner of the directory above is trusted, because that user
 * can replace everything anyway.
 */
static int outdir_check_owner(int fd, const struct stat *above, const char *shown)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!st.st_uid || st.st_uid == geteuid() || st.st_uid == above->st_uid)
		return 0;
	log_error("cannot write to %s: user %lu owns it and could replace the outputs; choose "
		  "another directory with -o",
		  shown, (unsigned long)st.st_uid);
	return -EPERM;
}

/* Splits a path into the directory above and the last name. Both are in buf, or static. */
static void outdir_split(char *buf, const char **ret_above, const char **ret_name)
{
	for (size_t n = strlen(buf); n > 1 && buf[n - 1] == '/';)
		buf[--n] = 0;
	char *slash = strrchr(buf, '/');

	*ret_above = !slash ? "." : slash == buf ? "/" : buf;
	*ret_name = !slash ? buf : slash[1] ? slash + 1 : ".";
	if (slash)
		*slash = 0;
}

int post_outdir_open(const char *path, int *ret_fd)
{
	char target[PATH_MAX], buf[PATH_MAX];
	const char *above_path, *name;
	struct stat above, st;

	if (strlen(path) >= sizeof(buf))
		return -ENAMETOOLONG;
	strcpy(buf, path);
	if (!*buf)
		return -ENOENT;
	outdir_split(buf, &above_path, &name);
	AUTO_CLOSE int above_fd = open(above_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int fd =
		above_fd < 0 ? -1 : openat(above_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(above_fd, &above) || fstat(fd, &st))
		return errno == EPERM ? -EACCES : -errno;
	int r = outdir_check_owner(fd, &above, path);

	if (r)
		return r;
	/* Open the target of the same link whose owner was checked. */
	ssize_t n = S_ISLNK(st.st_mode) ? readlinkat(fd, "", target, sizeof(target) - 1) : 0;

	target[n < 0 ? 0 : n] = 0;
	AUTO_CLOSE int dir =
		n ? openat(above_fd, target, OUTDIR_FLAGS) : openat(fd, ".", OUTDIR_FLAGS);

	r = dir < 0 ? (errno == EPERM ? -EACCES : -errno) : outdir_check_owner(dir, &above, path);
	if (!r)
		*ret_fd = TAKE_FD(dir);
	return r;
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
	r = post_outdir_open(OUTDIR_PARENT, &parent_fd);
	if (r)
		return r == -EPERM ? r : outdir_failed(OUTDIR_PARENT, r);
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
	int fd = -1, r = outdir_make_wanted(wanted);

	if (r)
		return r;
	r = post_outdir_open(wanted, &fd);
	if (r)
		return r == -EPERM ? r : outdir_failed(wanted, r);
	return outdir_take(fd, strdup(wanted), wanted, ret_dir);
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
