/* prof.tar.gz: a recording as one file. Through libarchive; no other program is executed for any compression. */
#ifndef RECORDING_ARCHIVE_H
#define RECORDING_ARCHIVE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define ARCHIVE_NAME_MAX 1024 /* bytes of a member's name */
#define ARCHIVE_DEPTH_MAX 32 /* folders in a member's name, and below a member when writing */

/*
 * Writes the named members (regular files, or directories with all regular files below; links and others are left out) of
 * dir_fd as a gzip-compressed tar to out_fd, each below the folder `prefix`. Deterministic: members as they are named, what is
 * below them by name, owner 0, modes 0600 and 0700 (0644 of what recording_is_public), file times kept in whole
 * seconds, no time of its own. A file that grows meanwhile is taken at the size it had. 0; -ENOENT (a member is not
 * there); -EIO (a file became shorter while it was read); -ENAMETOOLONG; -ENOSPC, -errno; with *err, whose offset is in
 * the archive.
 */
int archive_write(int dir_fd, const char *const *members, const char *prefix, int out_fd,
		  struct parse_error *err);

/* What was left out while reading, and why. */
struct archive_stats {
	uint64_t files, bytes;
	uint64_t refused_names; /* absolute, "..", empty, or too long, or a file where a folder would have to be */
	uint64_t refused_types; /* links, devices, sockets, pipes, sparse files */
	uint64_t refused_duplicates; /* there already: the first one stays */
	bool cut; /* it ends too early; all before that is as it was */
	char cut_member[ARCHIVE_NAME_MAX]; /* the file of which only the beginning was unpacked, by the last part of its name; "": none */
	uint64_t cut_bytes, cut_of_bytes; /* what there is of it, and what it had */
	bool unwritten; /* what it holds could not be put into the directory; the archive itself may be whole */
	bool no_tar; /* it could be unpacked, as far as it was looked at, and no tar is in it */
};

#define ARCHIVE_BYTES_MAX ((uint64_t)16 << 30) /* unpacked, all files together */
#define ARCHIVE_FILES_MAX 100000 /* members, refused ones too */
#define ARCHIVE_RATIO_MAX 1000 /* unpacked over packed, once ARCHIVE_RATIO_FROM are unpacked: a bomb */
#define ARCHIVE_RATIO_FROM ((uint64_t)64 << 20)

/*
 * Unpacks a tar (gzip, zstd, xz, bzip2 or plain) from in_fd, from its present position, into the empty directory dir_fd: regular
 * files and directories only, modes 0600 and 0700 (what recording_is_public follows the umask), never over an existing
 * file, a first folder common to all members is taken off. What recording_is_output is read, but not put there: it is
 * made again. ret_stats is filled in any case. 0; -EBADMSG (not an archive, without members, cut or damaged: what came
 * before stays, also the beginning of the file that was cut, of gzip to the last byte that can be unpacked, of the others but for
 * their last block); -E2BIG (a limit above; what came before stays); -ENOSPC, -errno; *err filled, its offset is in the packed
 * file.
 */
int archive_read(int in_fd, int dir_fd, struct archive_stats *ret_stats, struct parse_error *err);

#endif
