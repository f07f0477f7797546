/*
 * Where the names of each process's JIT-compiled code come from: what the recording captured of it, and on the machine of
 * the recording its jitdump, which it has mapped as perf wants it, and its perf map. Opened when the first address is asked for.
 */
#ifndef SYMBOLS_JIT_SOURCES_H
#define SYMBOLS_JIT_SOURCES_H

#include "container/opener.h"
#include "symbols/answers.h"
#include "symbols/jit_damage.h"
#include "symbols/jit_lines.h"
#include "symbols/jit_names.h"

#include <stdbool.h>
#include <stdint.h>

struct jit_sources;

struct jit_sources_options {
	int capture_dir_fd; /* the recording's symbols/; -1: none. Borrowed */
	uint64_t recorded_until_ns; /* struct symbolizer_options */
	bool live; /* this machine may be asked */
	/* What is wrong with the processes in there was counted when their names were asked for before. Borrowed; NULL: of none */
	const struct answers *counted;
	bool untimed; /* times of the recording are of another clock than CLOCK_MONOTONIC */
};

struct jit_sources_stats {
	uint64_t captures, jitdumps, perfmaps; /* that were read */
	uint64_t il_maps; /* in captures: what lines are found by */
	/* Of processes whose names were asked for (lines alone are of what was counted before) and that are not counted yet: */
	struct jit_damage damage;
	uint64_t contradictions, doubts; /* sums of struct answers_process */
};

/* The file of a map record that a jitdump is in, if it still is the one that was mapped. 0, -ENOENT, -ESTALE, -ENOMEM. */
typedef int jit_sources_open_fn(void *ctx, uint32_t image, int *ret_fd);

/* opener (may be NULL) is borrowed. 0 or -ENOMEM. */
int jit_sources_new(const struct jit_sources_options *options, struct opener *opener, jit_sources_open_fn *open_image,
		    void *ctx, struct jit_sources **ret_sources);
void jit_sources_free(struct jit_sources *s);

/* A process maps jit-FILE_PID.dump, an image, for execution. 0 or -ENOMEM. */
int jit_sources_marker(struct jit_sources *s, int32_t pid, uint32_t file_pid, uint32_t image);

/* Whether a process has its PID since after the recording, so that what it has or wrote is of another program. */
bool jit_sources_is_later(const struct jit_sources *s, int32_t pid);

/* Whether the recording itself has something of a process. */
bool jit_sources_captured(struct jit_sources *s, int32_t pid);

/* Notes in answers what is known of how the names of each process that was asked for were taken. 0, -ENOMEM, -E2BIG. */
int jit_sources_note(const struct jit_sources *s, struct answers *answers);

/* How names of a process's code were taken while it was recorded; NULL: that is not known. Valid as long as s. */
const char *jit_sources_way(const struct jit_sources *s, int32_t pid);

/* What names a process's code; *ret_names NULL: nothing does. Valid as long as s. 0 or -ENOMEM. */
int jit_sources_provider(struct jit_sources *s, int32_t pid, struct symbol_provider **ret_names);

/* What has the lines of a process's code; -ENOENT: nothing does. The caller frees *ret_source before s; files as for jit_lines_open. */
int jit_sources_lines(struct jit_sources *s, int32_t pid, const struct jit_lines_files *files, struct line_source **ret_source);

struct jit_sources_stats jit_sources_stats(const struct jit_sources *s);

#endif
