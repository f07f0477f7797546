/* perf.data into a profile: reads the records, has their addresses named, adds events, threads, stacks and samples. */
#ifndef PROFCPU_INGEST_H
#define PROFCPU_INGEST_H

#include "base/error.h"
#include "profcpu/stacks.h"
#include "profcpu/wakeups.h"
#include "profile/profile.h"
#include "recording/offcpu_idx.h"
#include "recording/perfdata.h"
#include "recording/recording.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>

struct ingest_options {
	/* Where names come from; the store in it is asked first when it is complete. */
	struct symbolizer_options symbols;
	const struct samples_idx *samples; /* borrowed; what the recorder said of the stacks; NULL: nothing */
	const struct offcpu_idx *offcpu; /* borrowed; what the recorder said of waits and threads; NULL: nothing */
	bool grades; /* frames say how they were found */
	/* A directory (a recording's symbols/, which exists and is writable) that gets what naming needs on another
	 * machine; -1: none. Borrowed. Not written when the names came from a complete store already and stayed as they were, nor
	 * offline. */
	int write_store_dir_fd;
	struct audit *ret_audit; /* where 0 is given, with the caller to free it; NULL: nobody asks */
	struct symbolizer_images *ret_images; /* gets the files whose addresses were asked for, where 0 is given; NULL: nobody asks */
	/* Gets what the data say of how they were made, with the caller to free it, where 0 is given; NULL: nobody asks. */
	struct recording_manifest *ret_manifest;
};

struct ingest_result {
	struct perfdata_stats data;
	uint64_t events_with_samples; /* how many events of the file had samples */
	bool damaged; /* reading ended early: all readable records were taken in; error says where and why */
	struct parse_error error;
	bool store_complete; /* names came from a complete store, or one was written, and all that samples need was read */
	struct symbolizer_unread unread;
	struct symbolizer_lineless lineless;
	bool keeps_lines, hides_lines; /* symbolizer_keeps_lines, symbolizer_hides_lines */
	struct stacks_summary stacks;
	struct wakeups_summary wakeups;
	uint64_t off_runnable_ns; /* of all waits the part in which a thread waited for a CPU: struct offcpu_idx_wait */
	uint64_t off_estimated_ns, off_unknown_ns; /* of all threads: struct offcpu_idx_thread */
	uint64_t waits_untold; /* of which offcpu.idx, where there is one, says nothing */
	uint64_t lost_switches; /* of data.lost_events those that were switches and wakings, and no samples on a CPU */
	int store_error; /* -errno of writing the store; 0: written, or not asked for */
};

/*
 * Reads all of fd (perf.data, a file or a pipe in pipe mode, borrowed) into the profile. 0, also where the data were
 * damaged after a good start (ret_result->damaged); -EBADMSG when it is no perf.data at all; -ENOMEM; -errno;
 * ret_result->error filled, without words where the -errno says it all. A sample's weight is its period where perf script
 * prints one: the event was recorded with PERF_SAMPLE_PERIOD and is no tracepoint; else 1.
 */
int ingest_perfdata(int fd, const struct ingest_options *options, struct profile *profile,
		    struct ingest_result *ret_result);

#endif
