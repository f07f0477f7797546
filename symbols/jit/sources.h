/*
 * Finds the sources of names for each process's JIT-compiled code: the methods captured in the
 * recording, and on the machine of the recording its jitdump and its perf map. A jitdump is found
 * by its executable mapping, as in perf. Sources are opened at the first lookup. names.h chooses
 * among their results.
 */
#ifndef SYMBOLS_JIT_SOURCES_H
#define SYMBOLS_JIT_SOURCES_H

#include "container/opener.h"
#include "symbols/jit/lines.h"
#include "symbols/jit/names.h"
#include "symbols/store/jit_damage.h"
#include "symbols/store/lookup_cache.h"

#include <stdbool.h>
#include <stdint.h>

struct jit_sources;

struct jit_sources_options {
	int capture_dir_fd; /* the recording's symbols/; -1: none. Borrowed. */
	bool foreign;       /* these three: struct symbolizer_options */
	uint32_t owner;
	uint64_t recorded_until_ns;
	bool live; /* sources of this machine may be used */
	/*
	 * A cache whose processes had their problems counted in an earlier run; these are not
	 * counted again. Borrowed; NULL: none.
	 */
	const struct lookup_cache *counted;
	bool untimed; /* times of the recording are not CLOCK_MONOTONIC */
	/* Memory that the perf maps of all processes may take; 0: half of what is left. */
	uint64_t perfmap_memory;
};

struct jit_sources_stats {
	uint64_t captures, jitdumps, perfmaps; /* sources that were read */
	uint64_t il_maps;                      /* captured maps to IL, which lines need */
	/*
	 * Damage of processes that were not counted before and whose names were looked up, not
	 * lines alone.
	 */
	struct jit_damage damage;
	uint64_t contradictions, doubts; /* sums of struct lookup_cache_process */
	uint64_t methods_left_out;       /* of all processes, counted before or not */
};

/*
 * Opens the file of a map record that maps a jitdump, if it is still the one that was mapped.
 * Returns 0, -ENOENT, -ESTALE, -ENOMEM.
 */
typedef int jit_sources_open_fn(void *ctx, uint32_t image, int *ret_fd);

/* opener (may be NULL) is borrowed. Returns 0 or -ENOMEM. */
int jit_sources_new(const struct jit_sources_options *options, struct opener *opener,
		    jit_sources_open_fn *open_image, void *ctx, struct jit_sources **ret_sources);
void jit_sources_free(struct jit_sources *s);

/*
 * Notes that a process maps an image named jit-FILE_PID.dump for execution. The newest 16 of a
 * process count; older ones are counted as refused. Returns 0 or -ENOMEM.
 */
int jit_sources_add_jitdump(struct jit_sources *s, int32_t pid, uint32_t file_pid, uint32_t image);

/*
 * Whether the process that has this PID now is another one than the recorded one. It began after
 * the recording, or after the recorded one mapped an image at mapped_ns (0: not known), or belongs
 * to another user.
 */
bool jit_sources_pid_is_reused(struct jit_sources *s, int32_t pid, uint64_t mapped_ns);

/* As jit_users_in_our_root, for the recording. */
bool jit_sources_user(struct jit_sources *s, int32_t pid, uint32_t *ret_uid);
/* As jit_users_in_other_root. */
bool jit_sources_in_other_root(struct jit_sources *s, int32_t pid);

/*
 * Whether the runtime of a process could still add names when its jitdump or perf map was read.
 * False before jit_sources_provider, and for captured names.
 */
bool jit_sources_was_open(const struct jit_sources *s, int32_t pid);

/* Whether that process has ended since, so that all its names can be read. */
bool jit_sources_has_closed(struct jit_sources *s, int32_t pid);

/* Whether the recording holds captured methods of a process. */
bool jit_sources_has_capture(struct jit_sources *s, int32_t pid);

/*
 * Notes in lookup_cache how the names of each process with lookups were taken. Returns 0, -ENOMEM,
 * -E2BIG.
 */
int jit_sources_note(const struct jit_sources *s, struct lookup_cache *lookup_cache);

/*
 * How the names of a process's code were taken during the recording; NULL: not known. Valid as long
 * as s.
 */
const char *jit_sources_way(const struct jit_sources *s, int32_t pid);

/*
 * Gets the provider of names for a process's code; *ret_names NULL: there is none. Valid as long as
 * s. mapped_ns: when it mapped the first code, as for jit_sources_pid_is_reused. Returns 0 or
 * -ENOMEM.
 */
int jit_sources_provider(struct jit_sources *s, int32_t pid, uint64_t mapped_ns,
			 struct symbol_provider **ret_names);

/*
 * Opens the lines of a process's code. The caller frees *ret_source before s; files as for
 * jit_lines_open. Returns 0; -ENOENT: there are none; -ENOMEM.
 */
int jit_sources_lines(struct jit_sources *s, int32_t pid, uint64_t mapped_ns,
		      const struct jit_lines_files *files, struct line_source **ret_source);

struct jit_sources_stats jit_sources_stats(const struct jit_sources *s);

#endif
