/*
 * A recording: a directory, append-only while it is written, so that any prefix of it can be processed.
 *   manifest.json   format version, how it was made, whether it came to its end
 *   perf.data       standard records only
 *   symbols/        what naming needs on another machine
 * Everything else in it (flamegraph.svg, folded_stacks.out, offcpu.svg, offcpu.folded, wakeup.svg, wakeup.folded,
 * perf_script.out, report.json, prof.tar.gz) is derived and can be made again.
 */
#ifndef RECORDING_RECORDING_H
#define RECORDING_RECORDING_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDING_FORMAT 1 /* manifest.json "format" */

#define RECORDING_MANIFEST "manifest.json"
#define RECORDING_PERF_DATA "perf.data"
#define RECORDING_SAMPLES "samples.idx"
#define RECORDING_OFFCPU "offcpu.idx"
#define RECORDING_SYMBOLS "symbols"
#define RECORDING_NAMES "names" /* in symbols/ */
#define RECORDING_STACKS "stacks" /* the same */
#define RECORDING_SVG "flamegraph.svg"
#define RECORDING_FOLDED "folded_stacks.out"
#define RECORDING_OFFCPU_SVG "offcpu.svg"
#define RECORDING_OFFCPU_FOLDED "offcpu.folded"
#define RECORDING_WALL_SVG "wall.svg"
#define RECORDING_WALL_FOLDED "wall.folded"
#define RECORDING_WAKEUP_SVG "wakeup.svg"
#define RECORDING_WAKEUP_FOLDED "wakeup.folded"
#define RECORDING_SCRIPT "perf_script.out"
#define RECORDING_REPORT "report.json"
#define RECORDING_ARCHIVE "prof.tar.gz"

/* Whether a file of this name holds no address, so that it follows the umask; all else is its
 * owner's alone. */
bool recording_is_public(const char *name);

/* Whether a file of this name is derived: made again by each post-processing. */
bool recording_is_output(const char *name);

#define RECORDING_KILLED "killed" /* without its end, which was repaired later */
#define RECORDING_RINGS_FREE "unlimited" /* the recorder had CAP_IPC_LOCK */

/* What manifest.json holds. Texts belong to the struct (recording_manifest_free). */
struct recording_manifest {
	int format;
	char *tool; /* "profcpu 0.1.0" */
	char *host, *os_release, *arch;
	char *target; /* what was profiled, in words; program names only, never arguments */
	char *event; /* "cpu-clock" */
	char *damage; /* what of the recording is missing since it could not be written to its end,
		       * or came out of a damaged archive, in words; NULL or "": nothing */
	char *jit_names; /* --jit-names; NULL or "": its default */
	char *ring_memory; /* RECORDING_RINGS_FREE; NULL or "": limited, or not known */
	char *ended; /* RECORDING_KILLED; NULL or "": the recorder came to its end, or is not finished */
	uint32_t freq_hz;
	uint64_t start_realtime_ns, start_monotonic_ns, duration_ns; /* duration 0 until finished */
	bool finished; /* the recorder came to its end, or what it left was repaired */
	bool symbols_complete; /* symbols/ names everything that could be named where it was recorded */
};

/* Writes dir/manifest.json by a temporary file and rename, on a full disk over the one that is
 * there; that of a finished recording is on the disk then. 0 or -errno. */
int recording_manifest_write(int dir_fd, const struct recording_manifest *m);

/* 0; -ENOENT (no manifest: a bare perf.data directory); -EBADMSG; -ENOTSUP (a newer format); -errno. */
int recording_manifest_read(int dir_fd, struct recording_manifest *ret_m, struct parse_error *err);
/* The same from a text in memory. */
int recording_manifest_parse(const char *text, size_t len, struct recording_manifest *ret_m, struct parse_error *err);
void recording_manifest_free(struct recording_manifest *m);

#endif
