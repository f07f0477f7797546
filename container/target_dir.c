#include "container/target_dir.h"

#include "base/cleanup.h"
#include "container/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET_DELETED " (deleted)"
#define TARGET_NAMES_MAX 1000000  /* names that are read in a directory */
#define TARGET_CANDIDATES_MAX 256 /* descriptors with one name; a runtime has one */

int target_dir_open(struct opener *o, pid_t pid, const char *path, int *ret_fd)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = opener_path(o, pid, path, &fd);

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (opener_is_on_kernel_fs(fd))
		return -EACCES;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

bool target_dir_is_writable_by(int dir_fd, uid_t uid)
{
	struct stat st;

	if (!uid)
		return true;
	return !fstat(dir_fd, &st) &&
	       (st.st_mode & (S_IWGRP | S_IWOTH) || (st.st_uid == uid && st.st_mode & S_IWUSR));
}

int target_dir_create(int dir_fd, const char *name, int *ret_fd)
{
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
			0600);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Opens path for reading if it is a regular file. Any other kind is only opened as O_PATH. */
static int target_open_regular(int dir_fd, const char *path, int flags, int *ret_fd,
			       struct stat *ret_stat)
{
	AUTO_CLOSE int path_fd = openat(dir_fd, path, O_PATH | O_CLOEXEC | flags);

	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, ret_stat))
		return -errno;
	if (!S_ISREG(ret_stat->st_mode) || opener_is_on_kernel_fs(path_fd))
		return -EACCES;
	return opener_reopen(path_fd, ret_fd);
}

int target_dir_open_file(int dir_fd, const char *name, int *ret_fd, struct stat *ret_stat)
{
	return target_open_regular(dir_fd, name, O_NOFOLLOW, ret_fd, ret_stat);
}

int target_dir_remove(int dir_fd, const char *name, const struct target_file *file)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_dev != file->dev || st.st_ino != file->ino)
		return -ENOENT;
	return unlinkat(dir_fd, name, 0) ? -errno : 0;
}

static bool target_ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

int target_dir_each(int dir_fd, const char *suffix, int (*fn)(void *ctx, const char *name),
		    void *ctx)
{
	int r = 0, fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		r = -errno;
		cleanup_close(&fd);
		return r;
	}
	for (int i = 0; i < TARGET_NAMES_MAX && !r; i++) {
		struct dirent *e = readdir(d);

		if (!e)
			break;
		if (target_ends_in(e->d_name, suffix))
			r = fn(ctx, e->d_name);
	}
	closedir(d);
	return r;
}

struct target_search {
	pid_t pid;
	unsigned candidates; /* descriptors with that name so far */
	const char *name;
	int error; /* of the last candidate */
	int fd;
	struct target_file file;
};

/* Returns whether the link of a descriptor ends in "/NAME" or in "/NAME (deleted)". */
static bool target_link_is(const char *link, const char *name)
{
	size_t len = strlen(link), deleted = strlen(TARGET_DELETED), n = strlen(name);

	if (target_ends_in(link, TARGET_DELETED))
		len -= deleted;
	return len > n && link[len - n - 1] == '/' && !strncmp(link + len - n, name, n);
}

static bool target_writable(pid_t pid, int n)
{
	AUTO_FREE char *text = NULL;
	char name[64];
	size_t len;

	snprintf(name, sizeof(name), "fdinfo/%d", n);
	if (proc_read(pid, 0, name, PROC_FILE_MAX, &text, &len))
		return false;
	const char *flags = strstr(text, "flags:");

	return flags && (strtoul(flags + strlen("flags:"), NULL, 8) & O_ACCMODE) != O_RDONLY;
}

static int target_check_descriptor(void *ctx, pid_t n)
{
	struct target_search *s = ctx;
	char path[96], link[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", s->pid, n);
	ssize_t len = readlink(path, link, sizeof(link) - 1);

	if (len <= 0)
		return 0;
	link[len] = 0;
	if (!target_link_is(link, s->name))
		return 0;
	if (++s->candidates > TARGET_CANDIDATES_MAX)
		return -ENOENT;
	if (!target_writable(s->pid, n))
		return 0;
	s->error = target_open_regular(AT_FDCWD, path, 0, &s->fd, &st);
	if (s->error)
		return 0;
	s->file = (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
	return 1;
}

int target_dir_find_written_file(pid_t pid, const char *name, int *ret_fd,
				 struct target_file *ret_file)
{
	struct target_search s = {.pid = pid, .name = name};
	char dir[64];

	snprintf(dir, sizeof(dir), "/proc/%d/fd", pid);
	int r = proc_each_numeric_name(dir, target_check_descriptor, &s);

	if (r == 1) {
		*ret_fd = s.fd;
		*ret_file = s.file;
		return 0;
	}
	if (!r)
		r = s.error ? s.error : -ENOENT;
	return r;
}
