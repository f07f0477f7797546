#include "recording/archive.h"
#include "tests/fuzz/fuzz_dir.h"

#include <dirent.h>
#include <stdint.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The parent directory must contain only "in". */
static void check_outside(void)
{
	DIR *d = opendir(fuzz_dir_path);
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
	struct archive_stats stats;
	char in[sizeof(fuzz_dir_path) + 4];

	(void)fuzz_dir();
	snprintf(in, sizeof(in), "%s/in", fuzz_dir_path);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || mkdir(in, 0755) || write(fd, data, size) != (ssize_t)size ||
	    lseek(fd, 0, SEEK_SET))
		abort();
	int dir = open(in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		abort();
	archive_read(fd, dir, &stats, NULL);
	close(dir);
	close(fd);
	check_outside();
	nftw(in, fuzz_dir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
