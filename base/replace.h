/*
 * Files that appear whole or not at all. A file is written as NAME.PID.tmp in its directory and
 * then renamed to NAME. It is locked (flock(2)) while it is written, so that files of killed
 * writers can be recognised.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

#include <stddef.h>
#include <sys/types.h>

#define REPLACE_NAME_MAX 240 /* 255 bytes minus the suffix of the temporary name */

struct replace {
	int dir_fd; /* borrowed, or AT_FDCWD */
	int fd;     /* write here; -1 when not open */
	char name[REPLACE_NAME_MAX + 1];
	char temp[REPLACE_NAME_MAX + 32];
};

/*
 * Modes. A file with kernel or process addresses or a process's file names is private, like
 * recordings of perf.
 */
#define REPLACE_PRIVATE 0600
#define REPLACE_PUBLIC 0666

/*
 * Removes temporary files of these names that killed writers left: regular files of this user
 * without a lock. Keeps files that it cannot examine or remove. Safe while other processes write
 * into the directory.
 */
void replace_remove_stale(int dir_fd, const char *const *names, size_t n);

/*
 * Opens a temporary file in the directory of name; the umask reduces mode. 0; -ENAMETOOLONG;
 * -errno.
 */
int replace_open(struct replace *r, int dir_fd, const char *name, mode_t mode);

/*
 * Closes the file and renames it to its name, over an older file. 0; -errno: the temporary file is
 * removed too.
 */
int replace_commit(struct replace *r);

/*
 * Like replace_commit, for data that cannot be made again. A power cut leaves either the older file
 * or this one, whole; after the return it leaves this one (either one, if dir_fd is AT_FDCWD).
 * Costs some milliseconds, more on slow disks.
 */
int replace_commit_durably(struct replace *r);

/* Discards the temporary file. Accepts a struct that is not open or was committed. */
void replace_abort(struct replace *r);

#endif
