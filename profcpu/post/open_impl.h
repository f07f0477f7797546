/*
 * Shared by the parts of open: files and recordings (open.c), archives and directories of
 * `perf record --threads` (open_archive.c), copies of recordings (open_copy.c).
 */
#ifndef PROFCPU_POST_OPEN_IMPL_H
#define PROFCPU_POST_OPEN_IMPL_H

#include "profcpu/post/open.h"

/* Opens the files of the recording in s->dir_fd. 0; -errno after one log_error line. */
int post_open_recording(const char *path, struct post_source *s);

/*
 * open_archive.c: merges the files of the directory s->fd of `perf record --threads`, and opens the
 * result. unpack_dir_fd as below. 0; -errno after one log_error line.
 */
int post_open_perf_dir(struct post_source *s, const char *name, int unpack_dir_fd);

/*
 * open_archive.c: unpacks the archive s->fd, and opens the recording in it. unpack_dir_fd is
 * borrowed; -1: use a temporary directory. 0; -errno after one log_error line.
 */
int post_open_archive(struct post_source *s, const char *name, int unpack_dir_fd);

/*
 * open_copy.c: copies the recording into own_dir_fd (borrowed, empty), and continues with the copy.
 * 0; -errno after one log_error line.
 */
int post_open_copy(struct post_source *s, const char *name, int own_dir_fd);

#endif
