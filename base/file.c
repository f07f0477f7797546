#include "base/file.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_CREATE_TRIES 16
#define FILE_COPY_BYTES ((size_t)256 << 10)
#define FILE_COPY_AT_ONCE ((size_t)1 << 30)
#define FILE_HOLES_MAX 65536 /* bytes after this many holes count as data */

int file_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_len)
{
	AUTO_FREE char *buf = NULL;
	size_t len = 0, cap = 0;
	struct stat st;
	size_t hint = !fstat(fd, &st) && st.st_size > 0 && (uint64_t)st.st_size <= max_bytes
			      ? (size_t)st.st_size + 2
			      : 4096;

	for (;;) {
		if (vec_grow((void **)&buf, &cap, 1, len + 2 > hint ? len + 4096 : hint))
			return -ENOMEM;
		ssize_t n = read(fd, buf + len, cap - len - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
		if (len > max_bytes)
			return -E2BIG;
	}
	buf[len] = 0;
	*ret_data = TAKE_PTR(buf);
	*ret_len = len;
	return 0;
}

static bool file_is_trusted(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid();
}

/* Whether another user may have put this link, or this second name of a file, into the directory.
 */
static bool file_is_planted(const struct stat *dir, const struct stat *st)
{
	bool shared =
		(dir->st_mode & S_IWOTH) || ((dir->st_mode & S_IWGRP) && dir->st_gid != getegid());
	bool second = st->st_nlink > 1 && (shared || !file_is_trusted(dir));

	if (S_ISLNK(st->st_mode))
		return second || !file_is_trusted(st);
	return S_ISREG(st->st_mode) && second && !(st->st_mode & S_IROTH) &&
	       (shared || st->st_uid != dir->st_uid);
}

/*
 * Replaces *path by the target of its link, in buf; unchanged if it is none. Reads the link that
 * was checked, so that it cannot be exchanged.
 */
static int file_follow(int dir_fd, const struct stat *dir, const char **path, char buf[PATH_MAX])
{
	AUTO_CLOSE int link = openat(dir_fd, *path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const char *slash = strrchr(*path, '/');
	size_t at = slash ? (size_t)(slash + 1 - *path) : 0;
	struct stat st;

	if (link < 0 || fstat(link, &st))
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return 0;
	if (file_is_planted(dir, &st))
		return -ELOOP;
	if (at >= PATH_MAX)
		return -ENAMETOOLONG;
	ssize_t n = readlinkat(link, "", buf + at, PATH_MAX - at);

	if (n < 0 || (size_t)n >= PATH_MAX - at)
		return n < 0 ? -errno : -ENAMETOOLONG;
	buf[at + (size_t)n] = 0;
	memcpy(buf, *path, at);
	*path = buf[at] == '/' ? buf + at : buf;
	return 0;
}

/* type: S_IFREG or S_IFDIR. error: the one for another type. */
static int file_open_type(int dir_fd, const char *path, mode_t type, int error, int *ret_fd)
{
	char target[PATH_MAX];
	const char *place = path;
	AUTO_CLOSE int fd = -1;
	struct stat dir = {0}, st;
	bool chosen = dir_fd == AT_FDCWD;
	int r = chosen                ? 0
		: fstat(dir_fd, &dir) ? -errno
				      : file_follow(dir_fd, &dir, &place, target);

	if (r)
		return r;
	bool follow = chosen || place != path;

	/*
	 * Check before the open, because opening alone can act on a device: it rewinds a tape or
	 * starts a watchdog.
	 */
	if (fstatat(dir_fd, place, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW))
		return -errno;
	if ((st.st_mode & S_IFMT) != type)
		return error;
	fd = openat(dir_fd, place,
		    O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return errno == ENXIO ? error : -errno; /* a socket has replaced it */
	if (fstat(fd, &st))
		return -errno;
	if ((st.st_mode & S_IFMT) != type)
		return error;
	if (!follow && file_is_planted(&dir, &st))
		return -ELOOP;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int file_open_regular(int dir_fd, const char *path, int *ret_fd)
{
	return file_open_type(dir_fd, path, S_IFREG, -EINVAL, ret_fd);
}

int file_open_dir(int dir_fd, const char *path, int *ret_fd)
{
	return file_open_type(dir_fd, path, S_IFDIR, -ENOTDIR, ret_fd);
}

const char *file_open_error(int error)
{
	return error == -EINVAL ? "it is not a regular file"
	       : error == -ELOOP
		       ? "another user may have linked it to a file that only we may read; "
			 "copy the file there, or run profcpu as that user"
		       : strerror(-error);
}

int file_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_data, size_t *ret_len)
{
	AUTO_CLOSE int fd = -1;
	int r = file_open_regular(dir_fd, path, &fd);

	if (r)
		return r;
	return file_read_fd(fd, max_bytes, ret_data, ret_len);
}

int file_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reads all bytes into `to`, or writes all bytes of `from` if `to` is NULL. */
static int file_transfer(int fd, char *to, const char *from, size_t len, uint64_t offset)
{
	for (size_t done = 0; done < len;) {
		off_t at = (off_t)(offset + done);
		ssize_t n = to ? pread(fd, to + done, len - done, at)
			       : pwrite(fd, from + done, len - done, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return to ? -ENODATA : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int file_pwrite_all(int fd, const void *data, size_t len, uint64_t offset)
{
	return file_transfer(fd, NULL, data, len, offset);
}

int file_pread_all(int fd, void *data, size_t len, uint64_t offset)
{
	return file_transfer(fd, data, NULL, len, offset);
}

uint64_t file_data_bytes(int fd, uint64_t bytes)
{
	off_t before = lseek(fd, 0, SEEK_CUR), at = 0;
	uint64_t data = 0;

	for (int i = 0; (uint64_t)at < bytes; i++) {
		off_t from = i < FILE_HOLES_MAX ? lseek(fd, at, SEEK_DATA) : at, to;

		if (from < 0 && errno == ENXIO)
			break; /* only a hole follows */
		to = from < 0 || i == FILE_HOLES_MAX ? -1 : lseek(fd, from, SEEK_HOLE);
		if (from < 0 || to <= from) {
			data += bytes - (uint64_t)at;
			break;
		}
		if ((uint64_t)from < bytes)
			data += ((uint64_t)to < bytes ? (uint64_t)to : bytes) - (uint64_t)from;
		at = to;
	}
	if (before >= 0)
		(void)lseek(fd, before, SEEK_SET);
	return data;
}

int file_sync(int fd)
{
	while (fdatasync(fd)) {
		if (errno == EINVAL || errno == ENOTSUP || errno == ENOSYS || errno == EROFS)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int file_open_to_write(int dir_fd, const char *name, int flags, int *ret_fd)
{
	AUTO_CLOSE int fd =
		openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	if (st.st_nlink > 1)
		return -EMLINK;
	if (flags & O_CREAT && st.st_uid != geteuid())
		return -EPERM;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int file_create(int dir_fd, const char *name, int flags, mode_t mode, int *ret_fd)
{
	int fd = -1;

	for (int i = 0; i < FILE_CREATE_TRIES && fd < 0; i++) {
		if (unlinkat(dir_fd, name, 0) && errno != ENOENT)
			return -errno;
		fd = openat(dir_fd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST)
			return -errno;
	}
	if (fd < 0)
		return -EEXIST;
	*ret_fd = fd;
	return 0;
}

void file_close_from(int first)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, first, ~0u, 0))
		return;
#endif
	/* Linux before 5.9, or a filter of system calls. */
	DIR *dir = opendir("/proc/self/fd");

	for (struct dirent *e; dir && (e = readdir(dir));) {
		int fd = atoi(e->d_name);

		if (fd >= first && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

void file_remove_contents(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		cleanup_close(&fd);
		return;
	}
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    !unlinkat(fd, e->d_name, 0))
			continue;
		AUTO_CLOSE int below =
			openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below >= 0)
			file_remove_contents(below);
		(void)unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

int file_copy(int in_fd, int out_fd)
{
	AUTO_FREE char *buf = NULL;
	ssize_t n;

	while ((n = copy_file_range(in_fd, NULL, out_fd, NULL, FILE_COPY_AT_ONCE, 0)) > 0)
		;
	/*
	 * copy_file_range fails for pipes and between some file systems; on some it wrongly reports
	 * the end. Copy the rest by read.
	 */
	buf = malloc(FILE_COPY_BYTES);
	if (!buf)
		return -ENOMEM;
	while ((n = read(in_fd, buf, FILE_COPY_BYTES))) {
		int r = n > 0            ? file_write_all(out_fd, buf, (size_t)n)
			: errno == EINTR ? 0
					 : -errno;

		if (r)
			return r;
	}
	return 0;
}

bool file_equal(int a_fd, int b_fd)
{
	AUTO_FREE char *buf = malloc(2 * FILE_COPY_BYTES);
	struct stat a, b;

	if (!buf || fstat(a_fd, &a) || fstat(b_fd, &b) || !S_ISREG(a.st_mode) ||
	    !S_ISREG(b.st_mode) || a.st_size != b.st_size)
		return false;
	for (uint64_t at = 0, left = (uint64_t)a.st_size, n; left; at += n, left -= n) {
		n = left < FILE_COPY_BYTES ? left : FILE_COPY_BYTES;
		if (file_pread_all(a_fd, buf, n, at) ||
		    file_pread_all(b_fd, buf + FILE_COPY_BYTES, n, at) ||
		    memcmp(buf, buf + FILE_COPY_BYTES, n))
			return false;
	}
	return true;
}

int file_mkdirs(const char *path)
{
	AUTO_FREE char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *p = copy + 1; *copy && *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(copy, 0777) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(copy, 0777) && errno != EEXIST)
		return -errno;
	struct stat st;

	if (stat(copy, &st))
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

char *file_join(const char *dir, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}
