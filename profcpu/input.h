/* Everything that can be folded or drawn, turned into a profile: a recording's directory, perf.data, prof.tar.gz, the text of
 * perf script, from a file or from stdin. */
#ifndef PROFCPU_INPUT_H
#define PROFCPU_INPUT_H

#include "profile/profile.h"
#include "recording/perfdata.h"
#include "recording/script_text.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>

enum input_kind {
	INPUT_PERF_DATA, /* a file or pipe that begins with PERFILE2 */
	INPUT_RECORDING, /* a directory with perf.data in it */
	INPUT_ARCHIVE, /* a tar, gzip- or otherwise compressed, of such a directory */
	INPUT_TEXT, /* anything else: the text of perf script, or folded stacks */
};

struct input_options {
	bool raw_names, mangled; /* struct symbolizer_options */
	bool offline; /* only names that the recording holds */
};

struct input_result {
	enum input_kind kind;
	bool damaged; /* something was cut or damaged, what is readable was loaded; was said by log_warn */
	struct perfdata_stats data; /* zero for text */
	struct symbolizer_audit audit; /* zero for text */
	struct script_text_stats text; /* zero for others */
};

/* What fd holds, by its first bytes, without consuming them (works on files and pipes). 0 or -errno. */
int input_sniff(int fd, enum input_kind *ret_kind);

/*
 * Loads path ("-": stdin) into the profile. On failure says why by log_error and gives -errno. 0 also where a part was
 * damaged: then ret_result->damaged, and the command's exit status is EXIT_FAILED after the outputs are made.
 */
int input_load(const char *path, const struct input_options *options, struct profile *profile,
	       struct input_result *ret_result);

#endif
