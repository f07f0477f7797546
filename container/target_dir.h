/*
 * Creates and removes files of profcpu in a directory of a target, and finds files that a target
 * writes. Completes opener.h, which only reads. The directory is resolved once inside the target's
 * root and then kept open. Below it only plain names are used, and no link is followed. So a target
 * that owns the directory can only mislead us to its own files.
 */
#ifndef CONTAINER_TARGET_DIR_H
#define CONTAINER_TARGET_DIR_H

#include "container/opener.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Identity of a file; its name may belong to another file later. */
struct target_file {
	uint64_t dev, ino;
};

/*
 * Opens the directory as an O_PATH descriptor, which the caller closes. 0; -ENOTDIR; -EACCES: it is
 * on a kernel file system; errors as opener_path.
 */
int target_dir_open(struct opener *o, pid_t pid, const char *path, int *ret_fd);

/*
 * Returns whether a user can probably write into the directory. If not, we must not create files
 * there on the user's behalf. Treats all users as members of the directory's group.
 */
bool target_dir_is_writable_by(int dir_fd, uid_t uid);

/*
 * Creates a file with mode 0600, for reading and writing. 0; -EEXIST: the name is taken; -EACCES,
 * -EROFS, -ENOSPC, -errno.
 */
int target_dir_create(int dir_fd, const char *name, int *ret_fd);

/*
 * Opens a regular file for reading and returns its status in *ret_stat. 0; -ENOENT; -EACCES: not a
 * regular file, or no permission; -errno.
 */
int target_dir_open_file(int dir_fd, const char *name, int *ret_fd, struct stat *ret_stat);

/*
 * Removes name if it is still this regular file. Never removes a directory, nor a file elsewhere.
 * 0; -ENOENT: it is not this file; -EACCES, -EPERM, -EROFS, -errno.
 *
 * The kernel can only remove by name. So if another file gets the name between check and removal,
 * that file is removed. In a directory with the sticky bit (/tmp) this needs two users: the first
 * file's owner removes it, and another user creates the new file at that moment. In other
 * directories it needs a user who may write there, and who could remove that file anyway.
 */
int target_dir_remove(int dir_fd, const char *name, const struct target_file *file);

/*
 * Calls fn for each name that ends in suffix. Stops when fn returns non-zero, and returns that. 0;
 * -EACCES; -errno.
 */
int target_dir_each(int dir_fd, const char *suffix, int (*fn)(void *ctx, const char *name),
		    void *ctx);

/*
 * Finds the regular file with this name that the process has open for writing, in any directory,
 * even if it was deleted. Opens it for reading. Checks at most 256 descriptors with that name. 0;
 * -ENOENT: none; -EACCES, -EPERM: its descriptors or the file are not readable; -ESRCH. The caller
 * closes *ret_fd.
 */
int target_dir_find_written_file(pid_t pid, const char *name, int *ret_fd,
				 struct target_file *ret_file);

#endif
