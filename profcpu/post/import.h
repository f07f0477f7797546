/*
 * Reads perf.data into a profile: resolves its addresses to names, and adds events, threads, stacks
 * and samples.
 */
#ifndef PROFCPU_POST_IMPORT_H
#define PROFCPU_POST_IMPORT_H

#include "base/error.h"
#include "profcpu/compare/compare.h"
#include "profcpu/managed/unnamed.h"
#include "profcpu/post/stacks.h"
#include "profcpu/post/wakeups.h"
#include "profile/profile.h"
#include "recording/manifest.h"
#include "recording/offcpu_idx.h"
#include "recording/perfdata.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>

struct import_options {
	/* Sources of names. A complete store comes before all others. */
	struct symbolizer_options symbols;
	/* Reader of perf.data after its header; taken. NULL: the import opens it. */
	struct perfdata *data;
	/* samples.idx, with the grades of stacks. Borrowed; NULL: none. */
	const struct samples_idx *samples;
	bool at_call_sites; /* struct stacks_options */
	/* offcpu.idx, with details of waits and threads. Borrowed; NULL: none. */
	const struct offcpu_idx *offcpu;
	bool perf_threads; /* names of threads as in the perf form, also of ending ones */
	bool grades;       /* frames carry how they were found */
	/* Gets the samples of its process. Borrowed; NULL: none. */
	struct compare *compare;
	/* Gets the waits, for their causes. Borrowed; NULL: none. */
	struct managed_profiles *managed;
	/* Stacks of traces that get names. Borrowed. */
	const struct unnamed_source *sources;
	uint32_t nsources;
	/*
	 * The writable symbols/ of a recording, which gets the data that names need on another
	 * machine. -1: none. Borrowed. Not written if a complete store gave all names unchanged,
	 * and not written when offline.
	 */
	int write_store_dir_fd;
	/* Outputs, filled if the result is 0. NULL: not wanted. The caller frees them. */
	struct audit *ret_audit;
	struct symbolizer_images *ret_images;    /* images with sampled addresses */
	struct recording_manifest *ret_manifest; /* built from the headers of perf.data */
};

struct import_result {
	struct perfdata_stats data;
	uint64_t events_with_samples; /* events of the file that have samples */
	bool no_cpu;                  /* collect --no-cpu: no event can have samples of CPUs */
	/* Reading ended early at `error`; all records before it are in the profile. */
	bool damaged;
	struct parse_error error;
	/* A complete store gave the names or was written, and all files for names were read. */
	bool store_complete;
	struct symbolizer_unread unread;
	struct symbolizer_missing_lines lineless;
	bool keeps_lines, hides_lines; /* symbolizer_can_add_lines, symbolizer_hides_lines */
	struct post_stacks_summary stacks;
	struct wakeups_summary wakeups;
	/* Part of all waits in which threads waited for a CPU: struct offcpu_idx_wait. */
	uint64_t off_runnable_ns;
	uint64_t off_estimated_ns, off_unknown_ns; /* of all threads: struct offcpu_idx_thread */
	uint64_t waits;          /* recorded ones; with off_estimated_ns, one can stand for many */
	uint64_t waits_missing;  /* of waits: not in offcpu.idx; 0 without offcpu.idx */
	uint64_t refused_kernel; /* symbolizer_refused_kernel */
	uint64_t cut_stacks;     /* symbolizer_cut_stacks */
	uint64_t left_out;       /* symbolizer_left_out */
	struct tracker_dropped dropped;
	uint64_t lost_switches; /* part of data.lost_events: lost switches and wakeups */
	int store_error;        /* -errno of writing the store; 0: written or not wanted */
	bool stacks_kept;       /* the store has the stacks of all copies */
};

/*
 * Reads all of fd into the profile. fd is a perf.data file, or a pipe in pipe mode; borrowed.
 *
 * The weight of a sample is its period if perf script prints one, else 1. perf script prints one,
 * if necessary the event's fixed period, except for tracepoints.
 *
 * 0, also for data damaged after a good start (ret_result->damaged). -EBADMSG if it is not
 * perf.data at all; -ENOMEM; -errno. On failure ret_result->error is filled; its text is NULL if
 * the code alone explains the failure.
 */
int post_import_perfdata(int fd, const struct import_options *options, struct profile *profile,
			 struct import_result *ret_result);

#endif
