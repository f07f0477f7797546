#include "base/replace.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 8

/* Returns whether `temp` is a name that replace_open makes from `name`. */
static bool is_temp_of(const char *temp, const char *name)
{
	size_t len = strlen(name), digits;

	if (strncmp(temp, name, len) != 0 || temp[len] != '.')
		return false;
	digits = strspn(temp + len + 1, "0123456789");
	return digits && !strcmp(temp + len + 1 + digits, ".tmp");
}

static bool is_same_file(int fd, int dir_fd, const char *name)
{
	struct stat open, named;

	return !fstat(fd, &open) && !fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

static void clear_temp(int dir_fd, const char *temp)
{
	struct stat st;

	if (fstatat(dir_fd, temp, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid())
		return;
	AUTO_CLOSE int fd =
		openat(dir_fd, temp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && is_same_file(fd, dir_fd, temp))
		(void)unlinkat(dir_fd, temp, 0);
}

void replace_remove_stale(int dir_fd, const char *const *names, size_t n)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir)))
		for (size_t i = 0; i < n; i++)
			if (is_temp_of(entry->d_name, names[i])) {
				clear_temp(dir_fd, entry->d_name);
				break;
			}
	if (dir)
		closedir(dir);
}

int replace_open(struct replace *r, int dir_fd, const char *name, mode_t mode)
{
	*r = (struct replace){.dir_fd = dir_fd, .fd = -1};
	if (strlen(name) > REPLACE_NAME_MAX)
		return -ENAMETOOLONG;
	strcpy(r->name, name);
	snprintf(r->temp, sizeof(r->temp), "%s.%ld.tmp", name, (long)getpid());
	for (int i = 0; i < TRIES; i++) {
		int error = file_create(dir_fd, r->temp, O_WRONLY, mode, &r->fd);

		/* If the file system has no locks, replace_remove_stale removes nothing either. */
		if (error || flock(r->fd, LOCK_EX | LOCK_NB) ||
		    is_same_file(r->fd, dir_fd, r->temp))
			return error;
		/* Another process's replace_remove_stale removed it before it was locked. */
		cleanup_close(&r->fd);
	}
	return -EBUSY;
}

int replace_commit(struct replace *r)
{
	/* The lock stays until the file has its name. */
	int locked = fcntl(r->fd, F_DUPFD_CLOEXEC, 0), fd = r->fd, error = 0;

	r->fd = -1;
	/* Some file systems (NFS, quotas) report a full disk only at close. */
	if (close(fd) || renameat(r->dir_fd, r->temp, r->dir_fd, r->name))
		error = -errno;
	if (error)
		unlinkat(r->dir_fd, r->temp, 0);
	cleanup_close(&locked);
	return error;
}

int replace_commit_durably(struct replace *r)
{
	int error = file_sync(r->fd);

	if (error) {
		replace_abort(r);
		return error;
	}
	error = replace_commit(r);
	return error || r->dir_fd == AT_FDCWD ? error : file_sync(r->dir_fd);
}

void replace_abort(struct replace *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	unlinkat(r->dir_fd, r->temp, 0);
}
