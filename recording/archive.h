/* prof.tar.gz: a recording as one file. Through libarchive. */
#ifndef RECORDING_ARCHIVE_H
#define RECORDING_ARCHIVE_H

#include "base/error.h"

#include <stdint.h>

/*
 * Writes the named members (regular files, or directories with all regular files below) of dir_fd as a gzip-compressed
 * tar to out_fd, each below the folder `prefix`. Deterministic: sorted, owner 0, file times kept. 0 or -errno, with *err.
 */
int archive_write(int dir_fd, const char *const *members, const char *prefix, int out_fd,
		  struct parse_error *err);

/* What was left out while reading, and why. */
struct archive_stats {
	uint64_t files, bytes;
	uint64_t refused_names; /* absolute, "..", empty, or too long */
	uint64_t refused_types; /* links, devices, sockets, pipes */
};

#define ARCHIVE_BYTES_MAX ((uint64_t)16 << 30) /* unpacked, all files together */
#define ARCHIVE_FILES_MAX 100000
#define ARCHIVE_RATIO_MAX 1000 /* unpacked over packed, once 64 MiB are unpacked: a bomb */

/*
 * Unpacks a tar (gzip, zstd, xz or plain) from in_fd into the empty directory dir_fd: regular files and directories only,
 * modes 0644 and 0755, never over an existing file, a first folder common to all members is taken off. 0; -EBADMSG (not
 * an archive, or cut: what came before stays); -E2BIG; -errno; *err filled.
 */
int archive_read(int in_fd, int dir_fd, struct archive_stats *ret_stats, struct parse_error *err);

#endif
