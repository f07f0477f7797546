/*
 * Loads any input into a profile: the directory of a recording, perf.data, prof.tar.gz, the text of
 * perf script or a trace of .NET, from a file or from stdin.
 */
#ifndef PROFCPU_POST_LOAD_H
#define PROFCPU_POST_LOAD_H

#include "profcpu/managed/profiles.h"
#include "profcpu/post/import.h"
#include "profcpu/post/import_trace.h"
#include "profcpu/post/open.h"
#include "profile/profile.h"
#include "recording/script_read.h"

#include <stdbool.h>

struct post_options {
	/* Passed on to struct symbolizer_options. */
	bool raw_names, mangled, inlines, lines;
	bool improve;
	size_t max_stack;
	bool functions_only;  /* fold and draw without addresses (symbolizer_options.by_function) */
	bool perf_names_only; /* only with functions_only */

	bool offline;   /* take names only from the recording */
	bool idle;      /* outputs show idle waits (profile/idle.h) */
	bool no_damage; /* do not report damage: an earlier load of the same input did */

	/*
	 * Passed on to struct import_options. ret_audit stays empty for text, and must be NULL with
	 * functions_only. write_store_dir_fd: 0 and -1 mean none.
	 */
	bool grades;
	struct symbolizer_images *ret_images;
	struct audit *ret_audit;
	int write_store_dir_fd;
	struct recording_manifest *ret_manifest;

	/*
	 * Gets the comparison with the samples of the runtime's own sampler, if the recording has
	 * them. NULL: not wanted. The caller frees it.
	 */
	struct compare **ret_compare;

	/* The same for event profiles (--alloc and others). */
	struct managed_profiles **ret_managed;

	struct opener *opener;           /* has pinned the targets; NULL: use a new one */
	struct script_text_options text; /* for text; post_load sets full_name if it is NULL */
	const char *trace_event;         /* for traces: import_trace_options.event */
};

struct post_result {
	enum input_kind kind;
	bool damaged; /* a part was cut or damaged, the rest was loaded; log_warn reported it */
	bool data_damaged; /* the damage is in perf.data itself */
	/*
	 * The recorder was killed or lost power. All that it wrote was loaded; a note reported it.
	 */
	bool unfinished;
	/* Rings had the size that the recorder wanted, by CAP_IPC_LOCK. False if unknown. */
	bool rings_free;
	struct recording_limits limits; /* of the recorder and of this load */
	struct import_result data;      /* zero for text */
	struct script_text_stats text;  /* zero for other inputs */
	struct import_trace_result trace;
};

/*
 * Loads path ("-": stdin) into the profile. 0; -errno after one log_error line.
 *
 * Damage is not a failure: ret_result->damaged is set, and the command makes its outputs and exits
 * with EXIT_FAILED.
 */
int post_load(const char *path, const struct post_options *options, struct profile *profile,
	      struct post_result *ret_result);

/* Lost samples: without switches, wakeups and other records that the recorder counted. */
uint64_t post_lost_samples(const struct post_result *result);

/*
 * Loads an input that is open already, like post_load. name is for messages. The caller reports
 * missing lines by post_load_report_lines.
 */
int post_load_source(struct post_source *source, const char *name,
		     const struct post_options *options, struct profile *profile,
		     struct post_result *ret_result);

/*
 * Logs the error that no sample of the profile has the event `wanted`, and which events have
 * samples. name: of the input.
 */
void post_load_report_event(const struct profile *profile, const char *name, const char *wanted);

#define POST_NO_CPU "no CPU samples were taken (--no-cpu); take one of its files *.folded"
/* -ENODATA, logged: an input without CPU samples, by collect --no-cpu. Else 0. */
int post_load_need_cpu(const char *name, const struct post_result *result);

/* Warns if names differ from those of the target. */
void post_load_report_texts(const char *name, struct profile_text_changes changes);

/* Bytes that the tree of a picture and its drawing may take now: half of the memory left, not 0. */
uint64_t post_load_picture_memory(void);

/* Warns if stacks or addresses were cut by one of the limits on memory. */
void post_load_report_cut(const char *name, enum recording_limit limit, uint64_t cut);

/* Notes which requested inlined functions and lines are missing, and why. */
void post_load_report_lines(const struct post_options *options, const char *name,
			    const struct post_result *result);

#endif
