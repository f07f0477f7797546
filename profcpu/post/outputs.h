/*
 * Writes the files that are derived from a recording: pictures, folded stacks, the text of perf
 * script, the report, and the archive.
 */
#ifndef PROFCPU_POST_OUTPUTS_H
#define PROFCPU_POST_OUTPUTS_H

#include "profcpu/compare/methods.h"
#include "profcpu/post/load.h"
#include "profcpu/post/report_waits.h"
#include "profile/idle.h"
#include "profile/profile.h"
#include "symbols/audit.h"

#include <stdbool.h>

/* bytes; a larger perf_script.out is not archived */
#define OUTPUTS_SCRIPT_IN_ARCHIVE_MAX ((uint64_t)64 << 20)

struct outputs_options {
	const char *dir;   /* for messages */
	int dir_fd;        /* directory for the outputs; borrowed */
	const char *title; /* of the pictures; NULL: not known */
	/* Event to fold for an input of text. NULL: the first one with samples. */
	const char *first_event;
	const struct post_result *result; /* for the report; borrowed */
	struct recording_limits *limits;  /* of result; costs of pictures are added */
	const struct audit *audit;        /* for the report; empty for text; borrowed */
	const struct report_waits *waits; /* for the report; borrowed */
	struct idle *idle;                /* borrowed; NULL: show idle waits */
	/* Wall clock (profcpu/post/wall.h); borrowed; NULL: no wall.* */
	const struct profile_group *wall;
	size_t nwall;
	/* Borrowed; NULL: no compare.* */
	const struct compare *compare;
	const struct compare_methods *methods;  /* of compare */
	const struct managed_profiles *managed; /* borrowed; NULL: no event profiles */
	bool in_place;                          /* dir_fd is the recording that was loaded */
	bool archive;                           /* write prof.tar.gz; dir_fd is a whole recording */
	/*
	 * Folded stacks have source lines. The script never has: its readers expect one line for
	 * each frame.
	 */
	bool lines;
	bool script; /* write perf_script.out; false if it was the input */
};

/*
 * Writes them, the picture first, each whole or not at all. log_error reports each that fails; the
 * others are still written. 0, or the first -errno. *ret_any: whether one was written.
 */
int post_outputs_write(struct profile *profile, const struct outputs_options *options,
		       bool *ret_any);

#endif
