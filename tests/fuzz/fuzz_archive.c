#include "recording/archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char base[] = "/dev/shm/profcpu-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	/* Whatever is unpacked is a regular file or a directory. */
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		abort();
	return remove(path);
}

static void remove_base(void)
{
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Nothing but "in" may be in the directory above. */
static void check_outside(void)
{
	DIR *d = opendir(base);
	struct dirent *e;

	if (!d)
		abort();
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "in"))
			abort();
	closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int made;
	struct archive_stats stats;
	char in[sizeof(base) + 4];

	if (!made) {
		made = 1;
		if (!mkdtemp(base))
			abort();
		atexit(remove_base);
	}
	snprintf(in, sizeof(in), "%s/in", base);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || mkdir(in, 0755) || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	int dir = open(in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		abort();
	archive_read(fd, dir, &stats, NULL);
	close(dir);
	close(fd);
	check_outside();
	nftw(in, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
