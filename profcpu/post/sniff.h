/*
 * Finds the kind of an input by its first bytes, without consuming them. Works on files, pipes and
 * sockets.
 */
#ifndef PROFCPU_POST_SNIFF_H
#define PROFCPU_POST_SNIFF_H

#include <stdbool.h>

enum input_kind {
	/*
	 * A file or pipe that begins with PERFILE2. If it lies in the directory of a recording,
	 * that directory gives its names and its manifest.
	 */
	INPUT_PERF_DATA,
	INPUT_RECORDING, /* a directory with perf.data in it */
	INPUT_PERF_DIR,  /* a directory of `perf record --threads` */
	INPUT_ARCHIVE,   /* a tar of such a directory */
	INPUT_TRACE,     /* events of .NET (nettrace) */
	INPUT_TEXT,      /* anything else: the text of perf script, or folded stacks */
};

/* Whether the input is, or becomes, the directory of a recording. */
static inline bool input_is_recording(enum input_kind kind)
{
	return kind != INPUT_TEXT && kind != INPUT_TRACE;
}

/*
 * Finds the kind of the input fd. *ret_packer: name of the program that decompresses an archive,
 * such as "gzip"; static; NULL: not compressed. 0 or -errno.
 */
int post_sniff_kind(int fd, enum input_kind *ret_kind, const char **ret_packer);

/* Whether text is folded stacks ("a;b 12") and not the text of perf script, by its first lines. */
bool post_sniff_text_is_folded(int fd);

/* Whether fd has a NUL in its first bytes. No text that profcpu reads has one. */
bool post_sniff_is_binary(int fd);

/*
 * Whether perf.data in fd needs seeking, but fd cannot seek. perf.data has one form for files and
 * one for pipes, and both begin alike. Reading the form for files needs seeking.
 */
bool post_sniff_needs_seeking(int fd);

#endif
