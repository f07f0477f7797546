/* Where the file of an image is now: in the root of a process that mapped it, held by the mapping, or in our own root. */
#ifndef SYMBOLS_IMAGE_FILE_H
#define SYMBOLS_IMAGE_FILE_H

#include "container/opener.h"
#include "symbols/answers.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_FILE_BYTES_MAX ((uint64_t)8 << 30) /* a file that is larger is not read */

/* A process, and where it mapped the image. */
struct image_file_place {
	struct opener *opener; /* may be NULL: only our own root is looked in */
	int32_t pid;
	uint64_t start, end;
	/* The very file, and not only one with its build id: what is mapped comes first, and what is at the path is what a living process
	 * has mapped, or was there already when an ended one mapped it. */
	bool exact;
	uint64_t mapped_ns; /* exact: CLOCK_REALTIME when it was mapped, or later; 0: not known */
	bool later, elsewhere; /* exact: pid is another process by now; it was recorded on another machine */
};

/* Opens the file that was mapped, by the first way that leads to it. The caller closes *ret_fd. 0; -ENOENT; -ESTALE: another file
 * is there now; -EACCES: one is there, or may be, and is not for us; -ENOMEM. */
int image_file_find(const struct image_file_place *p, const struct answers_image *key, const char *path, int *ret_fd);

/* Opens a regular file that the process need not have mapped, in its root or in ours. 0; -ENOENT; -ENOMEM; -errno. */
int image_file_open(const struct image_file_place *p, const char *path, int *ret_fd);

/*
 * The copy that perf record keeps of each image it saw, by build id. perf script prefers it to the file: it may have symbols that the
 * file has lost. fd: the file, or -1. Only the ELF image is the same for sure: all single-file .NET programs have the build id of
 * their host, whatever is behind it. The copy's descriptor, which the caller closes, or -1.
 */
int image_file_perf_cache(const struct answers_image *key, int fd);

#endif
