/* What a command's input argument turns out to be, opened: the one place that tells directories, perf.data, archives and
 * text apart. */
#ifndef PROFCPU_SOURCE_H
#define PROFCPU_SOURCE_H

#include "recording/recording.h"

#include <stdbool.h>

enum source_kind {
	SOURCE_PERF_DATA, /* a file or pipe that begins with PERFILE2 */
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
	struct recording_manifest manifest;
	bool damaged; /* an archive that was cut or damaged, or of which members were refused; was said by log_warn */
	char *temp_dir; /* where an archive was unpacked; removed by source_close; NULL: none, or the caller's */
};

/* What fd holds, by its first bytes, without consuming them (works on files and pipes). 0 or -errno. */
int source_sniff(int fd, enum source_kind *ret_kind);

/* Of a text: whether it is folded stacks ("a;b 12") and not perf script's, by its first lines, without consuming them. */
bool source_text_is_folded(int fd);

/*
 * Opens path; "-" is stdin. An archive is unpacked into unpack_dir (which exists and is empty), or with NULL into a
 * temporary directory. 0, also of an archive that is cut behind some of its perf.data; on failure -errno after one line by
 * log_error, and unpack_dir is empty again.
 */
int source_open(const char *path, const char *unpack_dir, struct source *ret_source);

/* Closes everything and removes the temporary directory. A zeroed or failed struct is not allowed; an opened one is. */
void source_close(struct source *s);

#endif
