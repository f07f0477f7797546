/* What a command's input argument turns out to be, opened: the one place that tells directories, perf.data, archives and
 * text apart. */
#ifndef PROFCPU_SOURCE_H
#define PROFCPU_SOURCE_H

#include "recording/offcpu_idx.h"
#include "recording/recording.h"
#include "recording/samples_idx.h"

#include <stdbool.h>
#include <string.h>

enum source_kind {
	SOURCE_PERF_DATA, /* a file or pipe that begins with PERFILE2; one of a recording's directory has its names and manifest too */
	SOURCE_RECORDING, /* a directory with perf.data in it */
	SOURCE_ARCHIVE, /* a tar of such a directory, unpacked now */
	SOURCE_TEXT, /* anything else: the text of perf script, or folded stacks */
};

/* Descriptors are -1 where there is nothing. All belong to the struct. */
struct source {
	enum source_kind kind;
	int fd; /* perf.data or text, at its start */
	int dir_fd; /* the recording's directory */
	int store_fd; /* its symbols/ */
	bool has_manifest;
	bool lacks_manifest; /* a recording's directory without one, as of what perf recorded; not: with one that cannot be read */
	struct recording_manifest manifest;
	int samples_fd; /* its samples.idx */
	bool has_samples; /* that is of this recording, and whole */
	struct samples_idx samples;
	int offcpu_fd; /* its offcpu.idx */
	bool has_offcpu; /* that is of this recording, and whole, or of a recorder that was killed and written until then */
	struct offcpu_idx offcpu;
	const char *packer; /* "gzip": an archive is packed by it; NULL: not packed. Static. */
	bool damaged; /* an archive that was cut or damaged, or of which members were refused, now or when the recording came out of
		       * one; was said by log_warn */
	char *temp_dir; /* where an archive was unpacked; removed by source_close; NULL: none, or the caller's */
};

/* Of a text: whether it is folded stacks ("a;b 12") and not perf script's, by its first lines, without consuming them. */
bool source_text_is_folded(int fd);

/*
 * Opens path, once, to see what it is: kind, and fd or (of a directory) dir_fd. "-" is stdin. 0; -errno after one line by
 * log_error.
 */
int source_begin(const char *path, struct source *ret_source);

/*
 * Goes on with what source_begin opened. With a directory own_dir_fd (borrowed, empty) what is no text becomes a recording
 * in it: an archive is unpacked, perf.data and a recording's directory are copied. With -1 an archive is unpacked into a
 * temporary directory, and the others are read where they are. What is missing of a damaged one is kept in its
 * manifest, so that it is not taken for whole when it is archived again. 0, also of an archive that is cut behind some
 * of its perf.data; on failure -errno after one line by log_error: the source is closed, own_dir_fd is empty again.
 */
int source_go_on(struct source *s, const char *path, int own_dir_fd);

/* Both, an archive into a temporary directory. */
int source_open(const char *path, struct source *ret_source);

/* The recording in a directory that is open already (borrowed); path is for messages. As source_go_on. */
int source_open_dir(int dir_fd, const char *path, struct source *ret_source);

/* What was recorded, for the title of a picture; borrowed. NULL: it does not say. */
const char *source_title(const struct source *s);

/* How messages call it. */
static inline const char *source_name(const char *path)
{
	return strcmp(path, "-") ? path : "stdin";
}

/* Closes everything and removes the temporary directory. A zeroed or failed struct is not allowed; an opened one is. */
void source_close(struct source *s);

#endif
