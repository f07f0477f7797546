/* Makes the outputs of a recording: `collect` after recording, `postprocess` again. */
#ifndef PROFCPU_POST_POSTPROCESS_H
#define PROFCPU_POST_POSTPROCESS_H

#include "profcpu/post/download_missing.h"
#include "profcpu/post/load.h"
#include "profcpu/post/outdir.h"

#include <stdbool.h>

struct postprocess_options {
	struct post_options load; /* postprocess_run sets write_store_dir_fd */
	/* Download of debug files; NULL: none. load.offline stops it too. */
	struct fetch_options *fetch;
	bool quiet;         /* print no report */
	bool compares;      /* print the comparison with the runtime's sampler, not the report */
	const char *title;  /* NULL: take it from the manifest */
	bool none_expected; /* an earlier message explained why samples may be missing */
};

/*
 * Loads the source, downloads debug files, keeps the names in symbols/, writes all outputs to dir,
 * and prints the report. Repairs the perf.data of a recorder that was killed. Keeps an existing
 * archive if the recording was damaged since.
 *
 * Reports each failure. Returns an exit status of base/exit_status.h. *ret_wrote: whether an output
 * was written; may be NULL.
 */
int postprocess_run(struct post_source *source, const char *name, const struct outdir *dir,
		    const struct postprocess_options *options, bool *ret_wrote);

#endif
