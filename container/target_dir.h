/*
 * Files of ours in a directory of a target, and what it has open itself: the part of the door (opener.h) that writes. A
 * directory is resolved inside the target's root once and held; below it only plain names are used and no link is ever followed, so that
 * a target that owns the directory can mislead us to nothing but its own files.
 */
#ifndef CONTAINER_TARGET_DIR_H
#define CONTAINER_TARGET_DIR_H

#include "container/opener.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A file for good: its name may belong to another one by now. */
struct target_file {
	uint64_t dev, ino;
};

/* The directory as a descriptor (O_PATH), which the caller closes. 0; -ENOTDIR; -EACCES: it is one of the kernel's file systems;
 * as opener_path. */
int target_dir_open(struct opener *o, pid_t pid, const char *path, int *ret_fd);

/* Whether a user may be able to write there: what it could not write itself is no place for files of ours on its behalf. Members
 * of the directory's group are not told from others. */
bool target_dir_is_open_to(int dir_fd, uid_t uid);

/* A new file for reading and writing that is its owner's alone. 0; -EEXIST something has that name; -EACCES, -EROFS, -ENOSPC, -errno. */
int target_dir_create(int dir_fd, const char *name, int *ret_fd);

/* A regular file, for reading; its status in *ret_stat. 0; -ENOENT; -EACCES: not a regular file, or no permission; -errno. */
int target_dir_file(int dir_fd, const char *name, int *ret_fd, struct stat *ret_stat);

/*
 * Removes name if it is that very regular file. 0; -ENOENT: it is not; -EACCES, -EPERM, -EROFS, -errno. The kernel removes by name
 * only, so another file may get the name between the look and the removal, and go with it. In a directory with the sticky bit (/tmp) the
 * first file's owner must have made room, and a second user must just then make a file of that name; in others it takes somebody who may
 * write there, and could have removed that file himself. A directory is never removed, nor anything elsewhere.
 */
int target_dir_remove(int dir_fd, const char *name, const struct target_file *file);

/* Calls fn for each name that ends so, until it gives non-zero, which is returned. 0; -EACCES; -errno. */
int target_dir_each(int dir_fd, const char *suffix, int (*fn)(void *ctx, const char *name), void *ctx);

/*
 * The regular file of this name that the process has open for writing, in whatever directory and also when it was deleted: for
 * reading. Of thousands with that name only some are looked at. 0; -ENOENT: none; -EACCES, -EPERM: its descriptors, or the file, may not
 * be read; -ESRCH.
 */
int target_writes(pid_t pid, const char *name, int *ret_fd, struct target_file *ret_file);

#endif
