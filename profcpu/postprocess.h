/* From a recording's directory to its outputs: what `collect` does after recording and `postprocess` does again. */
#ifndef PROFCPU_POSTPROCESS_H
#define PROFCPU_POSTPROCESS_H

#include "profcpu/fetch.h"
#include "profcpu/input.h"
#include "profcpu/outdir.h"

#include <stdbool.h>

struct postprocess_options {
	struct input_options input; /* write_store_dir_fd is set here, not by the caller */
	struct fetch_options *fetch; /* debug files for names; NULL: none are fetched, nor with input.offline */
	bool quiet; /* no report on stdout */
	const char *title; /* NULL: made from the manifest */
	bool none_expected; /* it was said already why there may be no samples */
};

/*
 * Loads the source, repairs the perf.data of a recorder that was killed, keeps the names in symbols/, writes all outputs to
 * dir and prints the report. An archive that is there already stays where perf.data was damaged since. Everything that fails
 * is said. An exit status of command.h; *ret_wrote (may be NULL): whether any output was written.
 */
int postprocess_run(struct source *source, const char *name, const struct outdir *dir,
		    const struct postprocess_options *options, bool *ret_wrote);

#endif
