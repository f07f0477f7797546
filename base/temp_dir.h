/*
 * A temporary directory that is gone after the process, whatever ends it. A child waits for that
 * and removes the directory, because a signal that kills the process leaves it no time.
 */
#ifndef BASE_TEMP_DIR_H
#define BASE_TEMP_DIR_H

struct temp_dir;

/*
 * Makes a directory profcpu-XXXXXX in base. *ret_fd: the directory, which the caller closes. It is
 * removed by temp_dir_remove, or when this process ends. Returns 0, -ENOMEM or -errno.
 */
int temp_dir_make(const char *base, struct temp_dir **ret_dir, int *ret_fd);

/* Its path: base and its name. Lives as long as d. */
const char *temp_dir_path(const struct temp_dir *d);

/* Removes it with all that is in it, and frees d. NULL: nothing to do. */
void temp_dir_remove(struct temp_dir *d);

#endif
