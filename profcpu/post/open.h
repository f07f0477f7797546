/*
 * Opens any input of a command: a recording, perf.data, an archive or text. An archive is unpacked
 * first. Also makes a recording from an input, in a directory of its own.
 */
#ifndef PROFCPU_POST_OPEN_H
#define PROFCPU_POST_OPEN_H

#include "base/temp_dir.h"
#include "profcpu/post/sniff.h"
#include "recording/manifest.h"
#include "recording/offcpu_idx.h"
#include "recording/perfdata.h"
#include "recording/samples_idx.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

/* An opened input. It owns its descriptors; -1: none. */
struct post_source {
	enum input_kind kind;
	int fd; /* perf.data or text, at its start */
	/* Reader of fd after its header; NULL: not made yet, or handed to the import. */
	struct perfdata *data;
	int dir_fd;   /* directory of the recording */
	int store_fd; /* symbols/ of the recording */
	/*
	 * The user who may have forged the recording. This user owns the archive, the directory,
	 * symbols/ or a file in them that is read. 0: root and we own all; pipes do not count.
	 * OPENER_NOBODY: several users.
	 */
	uid_t forger;
	bool copied; /* profcpu has just copied or unpacked it; the manifest will tell the forger */
	/* Only the directory belongs to the forger, and we have just written the recording. */
	bool only_dir_forged;
	struct stat
		written; /* the perf.data that we have just written; its owner is trusted, too */
	bool has_manifest;
	/* The recording has no manifest, as one that perf recorded. False if it is unreadable. */
	bool lacks_manifest;
	struct recording_manifest manifest;
	int samples_fd;   /* samples.idx */
	bool has_samples; /* samples belongs to this recording and is whole */
	struct samples_idx samples;
	int offcpu_fd; /* offcpu.idx */
	/* offcpu belongs to this recording, and is whole or as a killed recorder left it. */
	bool has_offcpu;
	struct offcpu_idx offcpu;
	/* trace.nettrace, and the ids of its threads. Empty files and others count as none. */
	int trace_fd, trace_threads_fd;
	/* Program that decompresses the archive; static. NULL: not compressed. */
	const char *packer;
	/*
	 * The archive was cut or damaged, or members of it were refused. It was so now or when the
	 * recording was unpacked; log_warn reported it.
	 */
	bool damaged;
	/*
	 * Directory with the unpacked archive; post_open_close removes it. NULL: none, or the
	 * caller's.
	 */
	struct temp_dir *temp_dir;
};

/*
 * Opens path ("-": stdin) once, and finds its kind. Sets kind, and dir_fd for a directory, else fd.
 * 0; -errno after one log_error line.
 */
int post_open_begin(const char *path, struct post_source *ret_source);

/*
 * Opens all that belongs to the result of post_open_begin.
 *
 * own_dir_fd is an empty directory, borrowed. There every input except text becomes a recording: an
 * archive is unpacked, perf.data and the directory of a recording are copied. With -1, an archive
 * is unpacked into a temporary directory (base/temp_dir.h), and other inputs are read in place.
 *
 * The manifest of an unpacked recording keeps what is missing. So an archive made from it again
 * still reports the damage.
 *
 * 0, also for an archive that was cut after a part of perf.data. -errno after one log_error line:
 * then the source is closed and own_dir_fd is empty again.
 */
int post_open_finish(struct post_source *s, const char *path, int own_dir_fd);

/* post_open_begin and post_open_finish; an archive goes into a temporary directory. */
int post_open(const char *path, struct post_source *ret_source);

/*
 * Opens the recording in an open directory (borrowed), like post_open_finish. path is for messages.
 * written: the perf.data that we have just written there; NULL: none. Its owner is trusted, too.
 */
int post_open_dir(int dir_fd, const char *path, const struct stat *written,
		  struct post_source *ret_source);

/* The title of a picture: the name of the recorded target. Borrowed; NULL: not known. */
const char *post_open_title(const struct post_source *s);

/*
 * Makes a temporary directory in $TMPDIR or /tmp. *ret_fd: the caller closes it. 0; -errno after
 * one log_error line.
 */
int post_open_temp_dir(struct temp_dir **ret_dir, int *ret_fd);

/* The name of an input in messages. */
static inline const char *post_open_name(const char *path)
{
	return strcmp(path, "-") ? path : "stdin";
}

/* Closes everything and removes the temporary directory. s must have been opened successfully. */
void post_open_close(struct post_source *s);

#endif
