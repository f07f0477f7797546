/*
 * Reads and writes manifest.json, and names the files of a recording.
 *
 * A recording is a directory. Files only grow while it is written, so that any prefix of it can be
 * processed:
 *
 *   manifest.json   format version, how it was made, whether it is finished
 *   perf.data       only standard records
 *   symbols/        data for naming on another machine
 *   trace.nettrace  events of a .NET runtime, with --eventpipe, --alloc and others
 *
 * All other files are derived and can be made again: flamegraph.svg, folded_stacks.out, offcpu.svg,
 * offcpu.folded, wakeup.svg, wakeup.folded, compare.*, perf_script.out, report.json, prof.tar.gz.
 */
#ifndef RECORDING_MANIFEST_H
#define RECORDING_MANIFEST_H

#include "base/error.h"
#include "recording/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define RECORDING_FORMAT 1 /* manifest.json "format" */

#define RECORDING_MANIFEST "manifest.json"
#define RECORDING_PERF_DATA "perf.data"
#define RECORDING_SAMPLES "samples.idx"
#define RECORDING_OFFCPU "offcpu.idx"
#define RECORDING_TRACE "trace.nettrace"
/* Ids of threads, if its process is in another PID namespace: lines of "TID TID-THERE". */
#define RECORDING_TRACE_THREADS "trace.threads"
#define RECORDING_TRACE_THREADS_LINE "%d %d"
#define RECORDING_TRACE_SAMPLER "sampler"
#define RECORDING_TRACE_UNLISTED "unlisted" /* the runtime cannot send single events */
#define RECORDING_SYMBOLS "symbols"
#define RECORDING_NAMES "names"   /* in symbols/ */
#define RECORDING_STACKS "stacks" /* in symbols/ */
#define RECORDING_SVG "flamegraph.svg"
#define RECORDING_FOLDED "folded_stacks.out"
#define RECORDING_OFFCPU_SVG "offcpu.svg"
#define RECORDING_OFFCPU_FOLDED "offcpu.folded"
#define RECORDING_WALL_SVG "wall.svg"
#define RECORDING_WALL_FOLDED "wall.folded"
#define RECORDING_WAKEUP_SVG "wakeup.svg"
#define RECORDING_WAKEUP_FOLDED "wakeup.folded"
#define RECORDING_COMPARE "compare.json"
#define RECORDING_COMPARE_TEXT "compare.txt"
#define RECORDING_COMPARE_SVG "compare.svg"
#define RECORDING_COMPARE_DIFF "compare-diff.svg"
/* Event profiles, by the names of their options. */
#define RECORDING_ALLOC_SVG "alloc.svg"
#define RECORDING_ALLOC_FOLDED "alloc.folded"
#define RECORDING_EXCEPTIONS_SVG "exceptions.svg"
#define RECORDING_EXCEPTIONS_FOLDED "exceptions.folded"
#define RECORDING_CONTENTION_SVG "contention.svg"
#define RECORDING_CONTENTION_FOLDED "contention.folded"
#define RECORDING_GC_SVG "gc.svg"
#define RECORDING_GC_FOLDED "gc.folded"
#define RECORDING_JIT_SVG "jit.svg"
#define RECORDING_JIT_FOLDED "jit.folded"
#define RECORDING_CAUSES_SVG "causes.svg"
#define RECORDING_CAUSES_FOLDED "causes.folded"
#define RECORDING_RUNTIME_SVG "runtime.svg"
#define RECORDING_RUNTIME_FOLDED "runtime.folded"
#define RECORDING_SCRIPT "perf_script.out"
#define RECORDING_REPORT "report.json"
#define RECORDING_ARCHIVE "prof.tar.gz"

/*
 * Returns whether a file of this name contains no addresses. Its mode then follows the umask; other
 * files are private.
 */
bool recording_is_public(const char *name);

/* Returns whether a file of this name is derived: each post-processing makes it again. */
bool recording_is_derived(const char *name);

/* The recorder was killed, and the recording was repaired later. */
#define RECORDING_KILLED "killed"
#define RECORDING_NO_EVENT "none"        /* no CPU samples were taken */
#define RECORDING_RINGS_FREE "unlimited" /* the recorder had CAP_IPC_LOCK */

/* Bytes of a text of the manifest; a longer one is cut when it is read (base/printable.h). */
#define RECORDING_TEXT_MAX 1024

/* Contents of manifest.json. The struct owns its texts (recording_manifest_free). */
struct recording_manifest {
	int format;
	char *tool; /* "profcpu 0.1.0" */
	char *host, *os_release, *arch;
	char *target; /* the target in words; program names without arguments */
	char *event;  /* "cpu-clock"; RECORDING_NO_EVENT */
	/*
	 * Description of missing data, after a write error or from a damaged archive; NULL or "":
	 * none.
	 */
	char *damage;
	char *jit_names;   /* value of --jit-names; NULL or "": the default */
	char *ring_memory; /* RECORDING_RINGS_FREE; NULL or "": limited, or unknown */
	char *ended;       /* RECORDING_KILLED; NULL or "": ended normally, or not finished */
	/*
	 * The user who may have forged the recording that profcpu copied or unpacked here; 0: none.
	 */
	uint64_t forger;
	/*
	 * Purposes of trace.nettrace: words between commas, of managed/kinds.h and
	 * RECORDING_TRACE_*. NULL or "": the sampler.
	 */
	char *trace_events;
	/* The process of trace.nettrace; 0: there is none. */
	uint64_t trace_pid;
	/* CLOCK_MONOTONIC before the trace was asked for, and after it began. */
	uint64_t trace_sent_ns, trace_received_ns;
	uint32_t freq_hz;
	/* duration_ns: 0 until finished */
	uint64_t start_realtime_ns, start_monotonic_ns, duration_ns;
	struct recording_limits limits; /* what limits cost the recorder */
	bool unwound; /* the recorder made the stacks; their callers are call sites */
	/* perf.data has copies of stacks of 32-bit programs, to be blanked after unwinding. */
	bool blanks_copies;
	bool finished;         /* the recorder ended normally, or its output was repaired */
	bool symbols_complete; /* symbols/ has all names that the recording machine could find */
};

/* Sets the format, the tool, and what is known of this machine. 0 or -ENOMEM. */
int recording_manifest_begin(struct recording_manifest *m, const char *tool);

/*
 * Writes dir/manifest.json as a temporary file and renames it; on a full disk overwrites the
 * existing file. Waits for the disk if the recording is finished. 0 or -errno.
 */
int recording_manifest_write(int dir_fd, const struct recording_manifest *m);

/*
 * Reads the manifest. Its texts are printable, because outputs show them. ret_st (NULL: not needed)
 * describes the file if it could be opened, also if its content is refused. Returns 0; -ENOENT: no
 * manifest, only a perf.data; -EBADMSG; -ENOTSUP: a newer format; -errno.
 */
int recording_manifest_read(int dir_fd, struct recording_manifest *ret_m, struct stat *ret_st,
			    struct parse_error *err);
/* Like recording_manifest_read, from a text in memory. */
int recording_manifest_parse(const char *text, size_t len, struct recording_manifest *ret_m,
			     struct parse_error *err);
void recording_manifest_free(struct recording_manifest *m);

#endif
