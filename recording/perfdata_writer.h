/*
 * Writer of perf.data files. Any prefix of such a file can be processed. The header has data size 0
 * until perfdata_writer_finish. The content of features, except sample times and build ids, is
 * before the data:
 *
 *   header | attrs | ids | content of features | PREFACE: table of these features |
 *   data | table of features | late features
 *
 * The data end with a FINISHED_ROUND with misc PERFDATA_MISC_LAST_ROUND. It separates records from
 * the table while the header has no data size yet.
 *
 * perf finds features only by the table after the data, which perfdata_writer_finish or
 * perfdata_repair writes. The preface holds the same table for the repair of a recording that was
 * cut off.
 *
 * Format: Linux tools/perf/Documentation/perf.data-file-format.txt.
 */
#ifndef RECORDING_PERFDATA_WRITER_H
#define RECORDING_PERFDATA_WRITER_H

#include "base/error.h"
#include "recording/perfdata.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfdata_writer;

struct perfdata_writer_event {
	struct perf_event_attr attr;
	const char *name;
	const uint64_t *ids;
	size_t nids;
	size_t room; /* number of ids that may be added later */
};

/*
 * Contents of the features. Texts are only used during perfdata_writer_new; NULL omits a feature.
 */
struct perfdata_writer_info {
	const char *version;        /* VERSION: "profcpu 0.1.0" */
	const char *const *cmdline; /* CMDLINE, ended by NULL; never arguments of targets */
	/* CLOCK_DATA: the same moment by two clocks */
	uint64_t start_realtime_ns, start_monotonic_ns;
	/* TRACING_DATA, which perf needs for tracepoint events; NULL: none */
	const void *tracing_data;
	size_t tracing_bytes;
};

/*
 * Writes the beginning of the file to fd (borrowed, seekable, at offset 0, empty). Takes HOSTNAME,
 * OSRELEASE, ARCH, NRCPUS, CPUDESC and TOTAL_MEM from this machine. 0; -ENOMEM; -E2BIG; -errno of
 * the write.
 */
int perfdata_writer_new(int fd, const struct perfdata_writer_event *events, size_t nevents,
			const struct perfdata_writer_info *info,
			struct perfdata_writer **ret_writer);

/*
 * Adds an id that records of `event` carry from now on. Returns 0; -E2BIG: a file with several
 * events has no room for it; -errno of the write, which stays. A file with one event needs no ids,
 * because all its records are of that event.
 */
int perfdata_writer_add_id(struct perfdata_writer *w, size_t event, uint64_t id);

/*
 * Queues records without copying them, so they must not change until perfdata_writer_round or
 * _flush. The next call may continue a record. After a failed write all further calls return its
 * -errno.
 */
int perfdata_writer_records(struct perfdata_writer *w, const void *data, size_t len);

/* Writes the queued records, and a FINISHED_ROUND if there were any. 0 or -errno. */
int perfdata_writer_round(struct perfdata_writer *w);

/* Writes the queued records. 0 or -errno. */
int perfdata_writer_flush(struct perfdata_writer *w);

/* Returns the file offset of the next record. */
uint64_t perfdata_writer_next(const struct perfdata_writer *w);

/* Returns the bytes of data written so far. */
uint64_t perfdata_writer_bytes(const struct perfdata_writer *w);

/*
 * Writes the late features, then the header with the data's size when all else is on disk. After a
 * failed write it first cuts the file after the last whole record. 0 or -errno of the first failed
 * write.
 */
int perfdata_writer_finish(struct perfdata_writer *w, uint64_t first_sample_ns,
			   uint64_t last_sample_ns);

void perfdata_writer_free(struct perfdata_writer *w);

/*
 * Adds or replaces the feature BUILD_ID in a finished file of profcpu, opened for reading and
 * writing. 0; -EBADMSG: not such a file; -ENOMEM; -errno.
 */
int perfdata_set_build_ids(int fd, const struct perfdata_build_id_entry *entries, size_t n,
			   struct parse_error *err);

/*
 * Returns whether this module began the file, finished or not. We cannot repair files of other
 * writers.
 */
bool perfdata_is_ours(int fd);

/*
 * Finishes a file whose recorder was killed: cuts an incomplete last record, and writes the
 * preface's features and the header. *ret_cut_bytes (may be NULL): bytes that were cut. 0, also for
 * a finished file; -EBADMSG: not a file of profcpu; -errno.
 */
int perfdata_repair(int fd, uint64_t *ret_cut_bytes, struct parse_error *err);

/*
 * Overwrites the registers and stack copies of 32-bit programs with zeros, in a finished file of
 * profcpu, opened for reading and writing. Each copy then has no valid bytes. 0; -EBADMSG: not such
 * a file, or damaged; -ENOMEM; -errno.
 */
int perfdata_blank_copies(int fd, struct parse_error *err);

#endif
