/* Files that appear whole or not at all: written beside their place, as NAME.PID.tmp, and renamed into it. As long as one is written it is locked
 * (flock(2)), so that what a killed writer left behind can be told. */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

#include <stddef.h>
#include <sys/types.h>

#define REPLACE_NAME_MAX 240 /* bytes of a name: 255 less what a temporary one adds */

struct replace {
	int dir_fd; /* borrowed, or AT_FDCWD */
	int fd; /* write here; -1 when not open */
	char name[REPLACE_NAME_MAX + 1];
	char temp[REPLACE_NAME_MAX + 32];
};

/* What holds addresses of the kernel or of a process, or its names of files, is its owner's, as perf's recordings are. */
#define REPLACE_PRIVATE 0600
#define REPLACE_PUBLIC 0666

/*
 * Removes what killed writers left behind of files of these names: regular files of ours with a temporary name and no lock. What cannot be
 * looked at or removed stays. Fine on a directory in which others write.
 */
void replace_clear(int dir_fd, const char *const *names, size_t n);

/* Opens a temporary file in the directory of name, mode less umask. 0; -ENAMETOOLONG; -errno. */
int replace_open(struct replace *r, int dir_fd, const char *name, mode_t mode);

/* Closes and puts the file in its place, over an older one. 0; -errno: then the temporary file is gone too. */
int replace_commit(struct replace *r);

/* The same for what cannot be made again: a power cut leaves the older file or this one, whole, and after the return this
 * one (of AT_FDCWD: one of them). Costs some milliseconds, on slow disks more. */
int replace_commit_durably(struct replace *r);

/* Throws away what was written. Fine on one that is not open or was committed. */
void replace_abort(struct replace *r);

#endif
