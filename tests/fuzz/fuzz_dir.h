/* A directory for files of a fuzz target; removed at exit. */
#ifndef TESTS_FUZZ_FUZZ_DIR_H
#define TESTS_FUZZ_FUZZ_DIR_H

#include "base/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char fuzz_dir_path[] = "/dev/shm/profcpu-fuzz-XXXXXX";

/* Removes it; all entries are regular files or directories. */
static inline int fuzz_dir_remove_one(const char *path, const struct stat *st, int type,
				      struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		abort();
	return remove(path);
}

static inline void fuzz_dir_remove(void)
{
	nftw(fuzz_dir_path, fuzz_dir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The directory, made by the first call, which stores its path in fuzz_dir_path. */
static inline int fuzz_dir(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	if (!mkdtemp(fuzz_dir_path)) {
		strcpy(fuzz_dir_path, "/tmp/profcpu-fuzz-XXXXXX"); /* a root without /dev/shm */
		if (!mkdtemp(fuzz_dir_path))
			abort();
	}
	atexit(fuzz_dir_remove);
	fd = open(fuzz_dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		abort();
	return fd;
}

/* A file in it; makes its directories, and discards earlier content. */
static inline void fuzz_dir_put(const char *name, const void *data, size_t len)
{
	const char *slash = strrchr(name, '/');
	char full[256];
	int dir = fuzz_dir(), fd;

	if (slash) {
		snprintf(full, sizeof(full), "%s/%.*s", fuzz_dir_path, (int)(slash - name), name);
		if (file_mkdirs(full))
			abort();
	}
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || file_write_all(fd, data, len))
		abort();
	close(fd);
}

#endif
