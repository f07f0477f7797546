#include "profcpu/post/outdir.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define OUTDIR_PARENT "profilings"
#define OUTDIR_TRIES 1000
#define OUTDIR_LINKS_MAX 40 /* as in the kernel */
#define OUTDIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define OUTDIR_WALK_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC) /* O_DIRECTORY mounts automounts */

static int outdir_failed(const char *path, int error)
{
	const char *remedy = remedy_for(error);

	log_error("cannot make the output directory %s: %s%s", path, strerror(-error),
		  *remedy ? remedy : "; choose one with -o");
	return error;
}

/* -EPERM means here that a message was logged. */
static int outdir_errno(void)
{
	return errno == EPERM ? -EACCES : -errno;
}

/*
 * Refuses a directory of a user who could replace our files. In /tmp, for example, anybody may have
 * made it. The owner of the directory above is trusted, because that user can replace everything
 * anyway. A link of that user is not trusted, because it can lead to our other files.
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

/*
 * Puts the target of a link before the rest of the path. Reads the link whose owner was checked, so
 * that it cannot be exchanged. /proc can reach a directory that no path names: opens *ret_fd then.
 */
static int outdir_follow(int fd, const char *name, const char *shown, char **rest, int *ret_fd)
{
	AUTO_CLOSE int link = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char target[PATH_MAX];
	struct statfs fs;
	struct stat st;

	if (link < 0 || fstat(link, &st) || fstatfs(link, &fs))
		return outdir_errno();
	if (!S_ISLNK(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid && st.st_uid != geteuid()) {
		log_error("cannot write to %s: it has a link of user %lu, who could lead the "
			  "outputs elsewhere; choose another directory with -o",
			  shown, (unsigned long)st.st_uid);
		return -EPERM;
	}
	if (fs.f_type == PROC_SUPER_MAGIC) {
		*ret_fd = openat(fd, name, OUTDIR_WALK_FLAGS);
		return *ret_fd < 0 ? outdir_errno() : 0;
	}
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

	if (n < 0)
		return outdir_errno();
	target[n] = 0;
	char *joined = file_join(target, *rest);

	if (!joined)
		return -ENOMEM;
	free(*rest);
	*rest = joined;
	*ret_fd =
		*target == '/' ? open("/", OUTDIR_WALK_FLAGS) : openat(fd, ".", OUTDIR_WALK_FLAGS);
	return *ret_fd < 0 ? outdir_errno() : 0;
}

/* Takes the first name from a path and moves the path on to the next one, or to its end. */
static int outdir_next_name(char *path, char name[NAME_MAX + 1])
{
	char *from = path + strspn(path, "/");
	size_t len = strcspn(from, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, from, len);
	name[len] = 0;
	from += len;
	from += strspn(from, "/");
	memmove(path, from, strlen(from) + 1);
	return 0;
}

/*
 * Opens the directory name by name, and the one above it. Makes only the last directory, so that a
 * typing error fills no wrong disk.
 */
static int outdir_walk(const char *path, bool make, struct stat *above, int *ret_fd)
{
	AUTO_CLOSE int fd = open(*path == '/' ? "/" : ".", OUTDIR_WALK_FLAGS);
	AUTO_FREE char *rest = strdup(path);
	char name[NAME_MAX + 1];
	int links = 0, r;

	if (fd < 0 || fstat(fd, above))
		return outdir_errno();
	if (!rest)
		return -ENOMEM;
	while (!(r = outdir_next_name(rest, name)) && *name) {
		int next = openat(fd, name, OUTDIR_WALK_FLAGS | O_NOFOLLOW);

		if (next < 0 && errno == ENOENT && make && !*rest) {
			if (mkdirat(fd, name, 0777) && errno != EEXIST)
				return outdir_errno();
			next = openat(fd, name, OUTDIR_WALK_FLAGS | O_NOFOLLOW);
		}
		if (next < 0 && errno == ENOTDIR)
			r = links++ < OUTDIR_LINKS_MAX ? outdir_follow(fd, name, path, &rest, &next)
						       : -ELOOP;
		else
			r = next < 0 || fstat(fd, above) ? outdir_errno() : 0;
		if (r) {
			cleanup_close(&next);
			return r;
		}
		cleanup_close(&fd);
		fd = next;
	}
	if (!r)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static int outdir_open(const char *path, bool make, bool any_owner, int *ret_fd)
{
	AUTO_CLOSE int place = -1, fd = -1;
	struct stat above;

	if (!*path)
		return -ENOENT;
	int r = outdir_walk(path, make, &above, &place);

	if (r)
		return r;
	fd = openat(place, ".", OUTDIR_FLAGS);
	r = fd < 0 ? outdir_errno() : any_owner ? 0 : outdir_check_owner(fd, &above, path);
	if (!r)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int post_outdir_open(const char *path, int *ret_fd)
{
	return outdir_open(path, false, false, ret_fd);
}

int post_outdir_open_recording(const char *path, int *ret_fd)
{
	int r = outdir_open(path, false, true, ret_fd);

	if (r && r != -EPERM)
		log_error("cannot open %s: %s%s", path, strerror(-r), remedy_for(r));
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
	int r = outdir_open(OUTDIR_PARENT, true, false, &parent_fd);

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

int post_outdir_make(const char *wanted, struct outdir *ret_dir)
{
	if (!wanted)
		return outdir_make_new(ret_dir);
	if (!strcmp(wanted, "-")) {
		log_error("-o: not stdout, but a directory is needed, because the outputs are "
			  "several files");
		return -EINVAL;
	}
	int fd = -1, r = outdir_open(wanted, true, false, &fd);

	if (r == -ENOENT && *wanted) {
		log_error("cannot make the output directory %s: its parent does not exist; make "
			  "that first (mkdir -p), or choose another one with -o",
			  wanted);
		return r;
	}
	if (r)
		return r == -EPERM ? r : outdir_failed(wanted, r);
	return outdir_take(fd, strdup(wanted), wanted, ret_dir);
}

int post_outdir_use(int dir_fd, const char *path, struct outdir *ret_dir)
{
	char *copy = strdup(path);

	return outdir_take(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), copy, path, ret_dir);
}

void post_outdir_remove_empty(const struct outdir *dir)
{
	AUTO_CLOSE int above = dir->fd < 0 ? -1 : openat(dir->fd, "..", OUTDIR_WALK_FLAGS);
	AUTO_FREE char *rest = above < 0 ? NULL : strdup(dir->path);
	char name[NAME_MAX + 1];
	struct stat open, named;

	/* Take the last name. The path before it may lead elsewhere by now. */
	do {
		if (!rest || outdir_next_name(rest, name))
			return;
	} while (*rest);
	if (fstat(dir->fd, &open) || fstatat(above, name, &named, AT_SYMLINK_NOFOLLOW) ||
	    open.st_dev != named.st_dev || open.st_ino != named.st_ino ||
	    unlinkat(above, name, AT_REMOVEDIR))
		return;
	if (!strncmp(dir->path, OUTDIR_PARENT "/", strlen(OUTDIR_PARENT "/")))
		rmdir(OUTDIR_PARENT);
}

void post_outdir_release(struct outdir *dir)
{
	cleanup_close(&dir->fd);
	free(dir->path);
	*dir = OUTDIR_NONE;
}
