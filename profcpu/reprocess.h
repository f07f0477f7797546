/* Makes the outputs of an input again: what `profcpu postprocess` and `profcpu compare` share. */
#ifndef PROFCPU_REPROCESS_H
#define PROFCPU_REPROCESS_H

#include "profcpu/post/postprocess.h"

struct reprocess_arguments {
	struct postprocess_options options;
	const char *input; /* any input of profcpu/post/open.h */
	const char *out;   /* directory; NULL: the recording itself, or a new one */
};

/*
 * Opens the input, chooses the directory, and makes a recording there unless the input is one.
 * Refuses a directory with another recording. Returns an exit status of base/exit_status.h.
 */
int reprocess_run(const struct reprocess_arguments *a);

#endif
