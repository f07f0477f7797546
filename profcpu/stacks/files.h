/*
 * A recording of one stack for each thread, which post-processing names like any other: perf.data,
 * samples.idx, manifest.json and symbols/ in a temporary directory.
 */
#ifndef PROFCPU_STACKS_FILES_H
#define PROFCPU_STACKS_FILES_H

#include "container/opener.h"
#include "profcpu/jit/capture.h"
#include "profcpu/record/rows.h"
#include "recording/manifest.h"
#include "recording/perfdata_writer.h"
#include "unwind/unwinder.h"

#include <stdbool.h>

struct stacks_files {
	int dir_fd, data_fd; /* dir_fd: borrowed */
	struct perfdata_writer *writer;
	struct record_rows *rows;
	struct jit_capture *capture; /* reads names while stacks are taken */
	struct recording_manifest manifest;
	unsigned char *buffer; /* PERFDATA_RECORD_BYTES_MAX_OUT bytes */
	uint64_t samples;      /* written so far */
};

/* The only event. Records of a sampler whose records have ids end like those of this event. */
struct perf_event_attr stacks_files_attr(void);

/*
 * Creates the files in dir_fd, and begins to capture the names of JIT-compiled code of the process.
 * 0; -errno. In any case, free them.
 */
int stacks_files_begin(struct stacks_files *f, int dir_fd, pid_t pid, bool lines);
void stacks_files_free(struct stacks_files *f);

/* Writes whole records. 0 or -errno. */
int stacks_files_records(struct stacks_files *f, const void *data, size_t bytes);

/* Writes a stack. *ret_sample: its number, from 1 on, which is its period too. 0 or -errno. */
int stacks_files_sample(struct stacks_files *f, pid_t pid, pid_t tid, const struct unwound *unwound,
			uint64_t *ret_sample);

/* Ends the capture of names, and the files. opener: has pinned the process. 0 or -errno. */
int stacks_files_end(struct stacks_files *f, struct opener *opener);

#endif
