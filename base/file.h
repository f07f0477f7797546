/* Files and directories of our own. Files of a target go through container/opener.h. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All bytes up to the end of fd from its present position, NUL-terminated after len; the caller frees *ret_data.
 * 0, -E2BIG over max_bytes, -errno. Works on pipes and on /proc files, whose size reads as 0. */
int file_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_len);

/*
 * Opens a regular file for reading, links followed. Nothing else is opened for reading: a FIFO does not hang, a device
 * has no side effect. 0; -EINVAL: not a regular file; -errno. The caller closes *ret_fd.
 */
int file_open_regular(int dir_fd, const char *path, int *ret_fd);

/* As file_read_fd, of a regular file by path (relative to the directory dir_fd, or AT_FDCWD). */
int file_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_data, size_t *ret_len);

/* Writes all, going on after short writes and EINTR. 0 or -errno (-ENOSPC on a full disk). */
int file_write_all(int fd, const void *data, size_t len);
int file_pwrite_all(int fd, const void *data, size_t len, uint64_t offset);

/* Copies from in_fd's present position to its end, blocks shared where the file system can. 0 or -errno. Works from pipes. */
int file_copy(int in_fd, int out_fd);

/* Whether two files that can be read at any place hold the same bytes; false where one cannot be read. */
bool file_equal(int a_fd, int b_fd);

/* Reads exactly len at offset; 0, -errno, -ENODATA where the file ends before. */
int file_pread_all(int fd, void *data, size_t len, uint64_t offset);

/*
 * How many bytes of a regular file are no holes, which cost nobody a disk: of the first `bytes`, and where the file system does not
 * tell, or there are very many holes, all of those. The present position stays.
 */
uint64_t file_data_bytes(int fd, uint64_t bytes);

/* Whether a file is large for the most part by its holes: what is read of them would cost memory, and their maker nothing. */
bool file_is_hollow(int fd);

/* Waits until what was written to a file, or into a directory, is on the disk. 0, also where that cannot be asked for (a pipe,
 * some file systems); -errno of writing it there (-EIO, -ENOSPC). */
int file_sync(int fd);

/*
 * A new file in the place of whatever stands there, so that nothing is written through a link, into a pipe or into a file
 * that somebody else has open or owns. flags: O_WRONLY or O_RDWR; mode less umask. 0; -EISDIR, -EPERM: what stands there
 * cannot be removed; -EEXIST: somebody else is quicker again and again; -errno. The caller closes *ret_fd.
 */
int file_create(int dir_fd, const char *name, int flags, mode_t mode, int *ret_fd);

/* Removes all that is in the directory, as far as that is possible; no link is followed. */
void file_remove_below(int dir_fd);

/* mkdir -p with mode 0777 less umask. 0 or -errno. */
int file_mkdirs(const char *path);

/* How many descriptors more than fd's number there may be (RLIMIT_NOFILE): who keeps many open leaves some to others. */
size_t file_descriptors_above(int fd);

/* dir + "/" + name, allocated; NULL when memory is out. */
char *file_join(const char *dir, const char *name);

#endif
