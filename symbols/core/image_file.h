/*
 * Opens the file of an image from the first place that still has it: the root of a process that
 * mapped it, the mapping itself, or our own root.
 *
 * The path is the target's choice, so a file is opened with the target's rights; after its end,
 * with those of nobody (opener_past_uid). Our own rights open only a file that is surely the mapped
 * one, by build id, or by device and inode if it has not changed since. A process of another root
 * gets a file of ours only by device and inode.
 */
#ifndef SYMBOLS_CORE_IMAGE_FILE_H
#define SYMBOLS_CORE_IMAGE_FILE_H

#include "container/opener.h"
#include "symbols/core/image_key.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_FILE_BYTES_MAX ((uint64_t)8 << 30) /* larger files are not read */

/* A process, and where it mapped the image. */
struct image_file_place {
	struct opener *opener; /* may be NULL: search only our own root */
	int32_t pid;
	uint64_t start, end;
	bool has_uid; /* uid is known: the user of the process, which had our root */
	uint32_t uid;
	bool other_root; /* the process is known to have had another root */
	/*
	 * Demand the very file that was mapped, not only one with its build id. The mapping is
	 * tried first. The file at the path counts only if a living process maps it, or if it is
	 * older than the mapping of an ended process.
	 */
	bool exact;
	uint64_t mapped_ns; /* CLOCK_REALTIME of the mapping, or later; 0: unknown */
	bool only_rules;    /* nothing of the file is shown, so device and inode suffice */
	bool later;         /* pid is another process now */
	bool elsewhere;     /* exact: recorded on another machine */
};

/*
 * Opens the file that was mapped, in the first way that works. The caller closes *ret_fd.
 *
 * Returns 0, -ENOENT, -ENOMEM or one of these errors. -ESTALE: another file is there now. -EACCES:
 * access to the file, or to its place, is denied. -EXDEV: its file system may not answer. -ETIME:
 * the lookup of its path did not end. -EFBIG: it, or its table of sections, is over a limit.
 */
int image_file_find(const struct image_file_place *p, const struct image_key *key, const char *path,
		    int *ret_fd);

/*
 * Opens a regular file in the process's root or in ours. The process need not have mapped it.
 * Returns 0, -ENOENT, -ENOMEM or -errno.
 */
int image_file_open(const struct image_file_place *p, const char *path, int *ret_fd);

/*
 * Opens the copy that perf record keeps of each image, by build id. `perf script` prefers it to the
 * file, because it may have symbols that the file has lost. Pass the file as fd, or -1.
 *
 * Only the ELF part is surely equal. All single-file .NET programs have the build id of their host,
 * with different assemblies after it. Returns a descriptor, which the caller closes, or -1.
 */
int image_file_perf_cache(const struct image_key *key, int fd);

#endif
