#include "profcpu/post/outfile.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define OUTFILE_LINKS_MAX 40 /* the kernel's limit */

/* A path, split into an open directory and a name in it. */
struct outfile_place {
	int dir_fd;
	char path[PATH_MAX]; /* changes to the target of each followed link */
	const char *name;    /* in path */
};

static int outfile_split(struct outfile_place *p)
{
	char *slash = strrchr(p->path, '/');
	char first = slash ? slash[1] : 0;

	p->name = slash ? slash + 1 : p->path;
	if (!*p->name)
		return slash ? -EISDIR : -ENOENT;
	cleanup_close(&p->dir_fd);
	if (slash)
		slash[1] = 0;
	p->dir_fd = open(slash ? p->path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (slash)
		slash[1] = first;
	return p->dir_fd < 0 ? -errno : 0;
}

/* Whether dir_fd is in /proc: links of /proc/PID/fd have no target that can be followed by name. */
static bool outfile_in_proc(int dir_fd)
{
	struct statfs fs;

	return !fstatfs(dir_fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* Replaces p by the target of its link. 1: done; 0: another user owns the link; -errno. */
static int outfile_follow(struct outfile_place *p)
{
	AUTO_CLOSE int fd = openat(p->dir_fd, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char target[PATH_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (st.st_uid && st.st_uid != geteuid())
		return 0;
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = 0;
	/* A relative target begins in the directory of the link. */
	size_t dir_len = *target == '/' ? 0 : (size_t)(p->name - p->path);

	if (dir_len + (size_t)n >= sizeof(p->path))
		return -ENAMETOOLONG;
	memcpy(p->path + dir_len, target, (size_t)n + 1);
	return 1;
}

/*
 * Follows links. *ret_st: status of the result; st_mode 0: it does not exist. The result is a link
 * only in /proc, or if another user owns it.
 */
static int outfile_resolve(struct outfile_place *p, struct stat *ret_st)
{
	for (int i = 0; i < OUTFILE_LINKS_MAX; i++) {
		int r = outfile_split(p);

		if (r)
			return r;
		*ret_st = (struct stat){0};
		if (fstatat(p->dir_fd, p->name, ret_st, AT_SYMLINK_NOFOLLOW))
			return errno == ENOENT ? 0 : -errno;
		if (!S_ISLNK(ret_st->st_mode) || outfile_in_proc(p->dir_fd))
			return 0;
		r = outfile_follow(p);
		if (r <= 0)
			return r;
	}
	return -ELOOP;
}

/* Opens the existing file in place. */
static int outfile_open_there(struct outfile *f, const struct outfile_place *p, int flags)
{
	f->fd = openat(p->dir_fd, p->name, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags);
	return f->fd < 0 ? -errno : 0;
}

static int outfile_open_place(struct outfile *f, struct outfile_place *p, const struct stat *st,
			      mode_t mode)
{
	mode_t kept = st->st_mode & (mode == REPLACE_PRIVATE ? 0700 : 0777);
	bool plain = S_ISREG(st->st_mode);

	if (S_ISLNK(st->st_mode) && outfile_in_proc(p->dir_fd))
		return outfile_open_there(f, p, O_TRUNC);
	if (st->st_mode && !plain && !S_ISLNK(st->st_mode))
		return outfile_open_there(f, p, O_NOFOLLOW);
	f->dir_fd = TAKE_FD(p->dir_fd);
	replace_remove_stale(f->dir_fd, &p->name, 1);
	int r = replace_open(&f->replace, f->dir_fd, p->name, mode);

	if (!r) {
		f->replaces = true;
		f->fd = f->replace.fd;
		/* Keep the mode of the replaced file, which may be private. */
		if (plain && st->st_uid == geteuid() && fchmod(f->fd, kept))
			r = -errno;
		return r;
	}
	p->dir_fd = TAKE_FD(f->dir_fd);
	/* The file may be writable although its directory is not. */
	return plain && (r == -EACCES || r == -EPERM || r == -EROFS)
		       ? outfile_open_there(f, p, O_NOFOLLOW | O_TRUNC)
		       : r;
}

static bool outfile_is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

void post_outfile_failed(const char *path, const char *what, int error)
{
	if (outfile_is_stdout(path))
		log_error("cannot write %s to stdout: %s%s", what, strerror(-error),
			  remedy_for_stdout(error));
	else
		log_error("cannot write %s: %s%s", path, strerror(-error), remedy_for(error));
}

int post_outfile_open(const char *path, mode_t mode, struct outfile *ret_file)
{
	struct outfile f = {.fd = STDOUT_FILENO, .dir_fd = -1};
	struct outfile_place place = {.dir_fd = -1};
	struct stat st;
	int r = 0;

	if (!outfile_is_stdout(path)) {
		if (strlen(path) >= sizeof(place.path))
			return -ENAMETOOLONG;
		strcpy(place.path, path);
		f.fd = -1;
		r = outfile_resolve(&place, &st);
		if (!r)
			r = outfile_open_place(&f, &place, &st, mode);
		cleanup_close(&place.dir_fd);
	}
	if (r)
		return post_outfile_close(&f, r);
	*ret_file = f;
	return 0;
}

int post_outfile_close(struct outfile *f, int error)
{
	if (f->replaces && !error)
		error = replace_commit(&f->replace);
	else if (f->replaces)
		replace_abort(&f->replace);
	else if (f->fd > STDERR_FILENO && close(f->fd) && !error)
		error = -errno;
	cleanup_close(&f->dir_fd);
	*f = (struct outfile){.fd = -1, .dir_fd = -1};
	return error;
}
