/* Opens, reads, copies and compares files of profcpu itself. container/opener.h opens files of a
 * target. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads all bytes from fd's present position to its end and adds a NUL; the caller frees *ret_data.
 * 0; -E2BIG: more than max_bytes; -errno. Works on pipes and on /proc files, whose size is 0.
 */
int file_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_len);

/*
 * Opens a regular file for reading and follows links. Any other kind of file is refused before it
 * is opened: a FIFO could hang, opening a device could have side effects. 0; -EINVAL: not a regular
 * file; -errno. The caller closes *ret_fd.
 *
 * In a directory dir_fd, other users may have put the file there to have us read another one for
 * them. -ELOOP: a link that neither root nor we own; or a hard link to a file that the owner of
 * the directory may not be able to read. With AT_FDCWD the path is the user's choice.
 */
int file_open_regular(int dir_fd, const char *path, int *ret_fd);

/* The same for a directory in dir_fd, for reading its entries. */
int file_open_dir(int dir_fd, const char *path, int *ret_fd);

/* Like strerror, for an error of the two functions above. */
const char *file_open_error(int error);

/* Like file_read_fd, for a regular file by path, relative to the directory dir_fd (or AT_FDCWD). */
int file_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_data, size_t *ret_len);

/*
 * Write all len bytes and continue after short writes and EINTR. 0 or -errno (-ENOSPC: the disk is
 * full).
 */
int file_write_all(int fd, const void *data, size_t len);
int file_pwrite_all(int fd, const void *data, size_t len, uint64_t offset);

/*
 * Copies from in_fd's present position to its end; shares blocks if the file system can. Works from
 * pipes. 0 or -errno.
 */
int file_copy(int in_fd, int out_fd);

/* Returns whether two seekable files hold the same bytes; false if one cannot be read. */
bool file_equal(int a_fd, int b_fd);

/* Reads exactly len bytes at offset. 0; -ENODATA: the file ends earlier; -errno. */
int file_pread_all(int fd, void *data, size_t len, uint64_t offset);

/*
 * Counts the bytes outside holes among the first `bytes` of a regular file. Holes use no disk
 * space. Returns all of `bytes` after the 65,536th hole, or if the file system does not report
 * holes. The present position stays. It waits while the file is being written: see
 * container/holes.
 */
uint64_t file_data_bytes(int fd, uint64_t bytes);

/*
 * Waits until data written to a file or directory is on the disk. 0; -errno of the write to disk
 * (-EIO, -ENOSPC). Also 0 if the file cannot be synced (a pipe, some file systems).
 */
int file_sync(int fd);

/*
 * Opens a regular file of a directory for writing. Other users may have put something else there:
 * it never follows a link, and does not wait for the reader of a FIFO.
 *
 * flags: such as O_RDWR, or O_WRONLY | O_APPEND | O_CREAT; a new file has mode 0600. With O_CREAT,
 * a file of another user is refused, because he can read what is written.
 *
 * 0; -EEXIST: not a regular file; -ENXIO: a FIFO without a reader; -EMLINK: it has another name,
 * perhaps of another user; -EPERM; -errno. The caller closes *ret_fd.
 */
int file_open_to_write(int dir_fd, const char *name, int flags, int *ret_fd);

/*
 * Removes the file `name` and creates a new one. Therefore it never writes through a link, into a
 * pipe, or into a file that another user opened or owns.
 *
 * flags: O_WRONLY or O_RDWR; the umask reduces mode. 0; -EISDIR, -EPERM: the old file cannot be
 * removed; -EEXIST: another process created the name each time first; -errno. The caller closes
 * *ret_fd.
 */
int file_create(int dir_fd, const char *name, int flags, mode_t mode, int *ret_fd);

/* Closes all descriptors from first on. */
void file_close_from(int first);

/* Removes everything in the directory that can be removed; follows no link. */
void file_remove_contents(int dir_fd);

/* Like mkdir -p, with mode 0777 reduced by the umask. 0 or -errno. */
int file_mkdirs(const char *path);

/* Returns dir + "/" + name, which the caller frees; NULL: out of memory. */
char *file_join(const char *dir, const char *name);

#endif
