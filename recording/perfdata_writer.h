/*
 * Writing perf.data so that any prefix of it can be processed: the header has data size 0 until
 * perfdata_writer_finish, what the features say (but for sample times and build ids) lies before
 * the data. Format: Linux tools/perf/Documentation/perf.data-file-format.txt.
 *
 *   header | attrs | ids | content of features | PREFACE: table of these features | data | table of
 * features | late features
 *
 * The data end with a FINISHED_ROUND with misc PERFDATA_MISC_LAST_ROUND, by which the reader and
 * the repair tell records from the table while the header does not say yet where the data end.
 *
 * perf finds features only by the table behind the data, which perfdata_writer_finish or
 * perfdata_repair writes; the preface holds the same table for the repair of a recording that was
 * cut off.
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
	size_t room; /* ids that may be added later */
};

/* What the features say. Texts are borrowed during perfdata_writer_new only; NULL leaves a feature
 * out. */
struct perfdata_writer_info {
	const char *version;        /* VERSION: "profcpu 0.1.0" */
	const char *const *cmdline; /* CMDLINE, ended by NULL; never arguments of targets */
	uint64_t start_realtime_ns, start_monotonic_ns; /* one moment by two clocks: CLOCK_DATA */
	const void
		*tracing_data; /* TRACING_DATA, needed by perf for tracepoint events; NULL: none */
	size_t tracing_bytes;
};

/*
 * Writes the beginning of the file to fd (borrowed, seekable, at offset 0, empty). HOSTNAME,
 * OSRELEASE, ARCH, NRCPUS, CPUDESC, TOTAL_MEM are asked of this machine. 0; -ENOMEM; -E2BIG; -errno
 * of the write.
 */
int perfdata_writer_new(int fd, const struct perfdata_writer_event *events, size_t nevents,
			const struct perfdata_writer_info *info,
			struct perfdata_writer **ret_writer);

/*
 * Records of `event` carry this id too from now on. 0; -E2BIG: there is no room for it, and with several events their records
 * could not be told apart (with one event nobody looks at ids); -errno of the write, which sticks.
 */
int perfdata_writer_add_id(struct perfdata_writer *w, size_t event, uint64_t id);

/*
 * Queues records without copying them (one may be continued by the next call): they must stay as they are until
 * perfdata_writer_round or _flush. A failed write sticks: all further calls give its -errno.
 */
int perfdata_writer_records(struct perfdata_writer *w, const void *data, size_t len);

/* Writes what is queued, and a FINISHED_ROUND if there was something. 0 or -errno. */
int perfdata_writer_round(struct perfdata_writer *w);

/* Writes what is queued. 0 or -errno. */
int perfdata_writer_flush(struct perfdata_writer *w);

/* The file offset that the next record will have. */
uint64_t perfdata_writer_next(const struct perfdata_writer *w);

/* Bytes of data written so far. */
uint64_t perfdata_writer_bytes(const struct perfdata_writer *w);

/*
 * Writes features and the header with the data's size, the header when all else is on the disk. After a failed write it
 * cuts the file behind the last whole record that got there and tries all the same. 0 or -errno (the first failed
 * write's).
 */
int perfdata_writer_finish(struct perfdata_writer *w, uint64_t first_sample_ns,
			   uint64_t last_sample_ns);

void perfdata_writer_free(struct perfdata_writer *w);

/*
 * Adds the feature BUILD_ID (replacing one that is there) to a finished file of ours, opened for
 * reading and writing. 0; -EBADMSG (not such a file); -ENOMEM; -errno.
 */
int perfdata_set_build_ids(int fd, const struct perfdata_build_id_entry *entries, size_t n,
			   struct parse_error *err);

/* Whether our writer began this file, which is finished or not; of others nothing is known how
 * their end is to be written. */
bool perfdata_is_ours(int fd);

/*
 * Finishes a file whose recorder was killed: cuts an incomplete last record off, writes the
 * features of the preface and the header. *ret_cut_bytes (may be NULL): what was cut. 0, also for a
 * file that is finished already; -EBADMSG (not a file of ours); -errno.
 */
int perfdata_repair(int fd, uint64_t *ret_cut_bytes, struct parse_error *err);

#endif
