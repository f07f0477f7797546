/*
 * prof.tar.gz: a recording as one file, written and read with libarchive. No other program is
 * executed for any compression.
 */
#ifndef RECORDING_ARCHIVE_H
#define RECORDING_ARCHIVE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define ARCHIVE_NAME_MAX 1024 /* bytes of a member's name */
/* Folders in a member's name; also levels below a member when writing. */
#define ARCHIVE_DEPTH_MAX 32

/*
 * Writes the named members of dir_fd as a gzip-compressed tar to out_fd, each below the folder
 * `prefix`. A member is a regular file, or a directory with all regular files below it. Links and
 * other kinds of files are left out.
 *
 * The output is deterministic. Members are in the given order, and files below them are sorted by
 * name. The owner is 0 and modes are 0600 and 0700 (0644 for files of recording_is_public). File
 * times are in whole seconds, and the archive itself has no time. A file that grows meanwhile is
 * stored with its size at the start.
 *
 * Returns 0; -ENOENT: a member does not exist; -EIO: a file shrank while it was read;
 * -ENAMETOOLONG; -ENOSPC, -errno. After an error *err is filled; its offset is in the archive.
 */
int archive_write(int dir_fd, const char *const *members, const char *prefix, int out_fd,
		  struct parse_error *err);

/* Result of archive_read: files that were unpacked, and reasons for omitting others. */
struct archive_stats {
	uint64_t files, bytes;
	/* Absolute, "..", empty or too long; or a file in place of a folder. */
	uint64_t refused_names;
	uint64_t refused_types;      /* links, devices, sockets, pipes, sparse files */
	uint64_t refused_duplicates; /* the name exists already; the first file stays */
	/* The archive ends early; all files before the end are complete. */
	bool cut;
	/* Last part of the name of the file that was only partly unpacked; "": none. */
	char cut_member[ARCHIVE_NAME_MAX];
	uint64_t cut_bytes, cut_of_bytes; /* unpacked and full size of that file */
	bool unwritten; /* writing into the directory failed; the archive may be intact */
	/* Decompression succeeded as far as it was tried, but the result is not a tar. */
	bool no_tar;
};

#define ARCHIVE_BYTES_MAX ((uint64_t)16 << 30) /* unpacked, all files together */
#define ARCHIVE_FILES_MAX 100000               /* members, including refused ones */
#define ARCHIVE_DIRS_MAX 4096                  /* directories that members are in */
/* A member's headers, with the map of a sparse file. Honest ones have a few KiB. */
#define ARCHIVE_HEADER_BYTES_MAX ((uint64_t)1 << 20)
/*
 * Limit of unpacked over packed size, against decompression bombs. Checked after ARCHIVE_RATIO_FROM
 * unpacked bytes.
 */
#define ARCHIVE_RATIO_MAX 1000
#define ARCHIVE_RATIO_FROM ((uint64_t)64 << 20)

/*
 * Unpacks a tar (gzip, zstd, xz, bzip2 or plain) from in_fd, from its present position, into the
 * empty directory dir_fd. Unpacks only regular files and directories, with modes 0600 and 0700
 * (files of recording_is_public follow the umask). Never overwrites a file. Removes a first folder
 * that all members share. Reads files of recording_is_derived without storing them, because they
 * are made again.
 *
 * Returns 0; -EBADMSG: not an archive, no members, cut off or damaged; -ENOSPC, -errno. -E2BIG:
 * more than a limit above, or its decompression needs more than half of the memory that is left.
 * ret_stats is always filled. After an error *err is filled; its offset is in the packed file.
 *
 * After -EBADMSG and -E2BIG the files before the error stay. The beginning of a file that was cut
 * off stays too, up to the last byte that can be unpacked. zstd and bzip2 lose the last block.
 */
int archive_read(int in_fd, int dir_fd, struct archive_stats *ret_stats, struct parse_error *err);

#endif
