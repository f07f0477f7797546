/*
 * Reading perf.data: what `perf record` (Debian's 5.10, 6.1, 6.12 and others) and profcpu itself write, file or pipe mode.
 * Format: Linux tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.
 */
#ifndef RECORDING_PERFDATA_H
#define RECORDING_PERFDATA_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFDATA_BUILD_ID_MAX 20
#define PERFDATA_CALLCHAIN_MAX 65536 /* entries of one sample; more is damage */

struct perfdata;

/* One event (attr) of the file. Pointers live as long as the struct perfdata. */
struct perfdata_event {
	struct perf_event_attr attr; /* fields that the file's attr is too short for are 0 */
	const char *name; /* from EVENT_DESC or EVENT_UPDATE, else perf's name for type and config, "unknown" at worst */
	const uint64_t *ids;
	size_t nids;
};

struct perfdata_build_id {
	uint8_t bytes[PERFDATA_BUILD_ID_MAX];
	uint8_t len; /* 0: none */
};

struct perfdata_sample {
	uint64_t ip, addr, id, period, weight, transaction, phys_addr;
	uint64_t cgroup;
	const uint64_t *callchain; /* as recorded, leaf first, with PERF_CONTEXT_* marks; NULL where sample_type has none */
	size_t ncallchain;
	const void *raw; /* tracepoint payload */
	uint32_t raw_bytes;
	const uint64_t *user_regs; /* popcount(attr.sample_regs_user) words, or NULL (abi 0) */
	uint64_t user_abi;
	const void *user_stack; /* dyn_size bytes, or NULL */
	uint64_t user_stack_bytes;
	const uint64_t *branches; /* nbranches x {from, to, flags} */
	uint64_t nbranches;
};

struct perfdata_mmap {
	uint64_t addr, len, pgoff;
	uint32_t prot, flags; /* of mmap2; 0 for the older record, whose maps are executable unless misc says MMAP_DATA */
	uint32_t maj, min;
	uint64_t ino, ino_generation; /* 0 where the record carries a build id instead */
	struct perfdata_build_id build_id;
	const char *filename;
};

/*
 * One record, parsed. Which union member holds follows `type` (PERF_RECORD_*). Pointers point into the reader's
 * buffers and are valid until the next perfdata_next.
 */
struct perfdata_record {
	uint32_t type;
	uint16_t misc; /* PERF_RECORD_MISC_*; & PERF_RECORD_MISC_CPUMODE_MASK is kernel, user, ... */
	uint16_t pad;
	uint32_t event; /* index into perfdata_events; of the sample, or by sample_id; 0 where the file has only one */
	uint64_t time_ns; /* of the sample or sample_id; 0: not known */
	int32_t pid, tid, cpu; /* of the sample or the record itself; -1: not known */
	uint64_t file_off; /* where the record begins in the file; in a compressed one, where its block begins */
	const struct perf_event_header *header; /* the whole raw record, header->size bytes */
	union {
		struct perfdata_sample sample; /* PERF_RECORD_SAMPLE */
		struct perfdata_mmap mmap; /* PERF_RECORD_MMAP, MMAP2 */
		struct {
			const char *name;
			bool exec;
		} comm; /* PERF_RECORD_COMM */
		struct {
			int32_t ppid, ptid;
		} task; /* PERF_RECORD_FORK, EXIT */
		struct {
			uint64_t lost;
		} lost; /* PERF_RECORD_LOST, LOST_SAMPLES */
		struct {
			uint64_t addr;
			uint32_t len;
			uint16_t ksym_type, flags; /* PERF_RECORD_KSYMBOL_*; flags & 1: unregistered */
			const char *name;
		} ksymbol;
		struct {
			uint64_t id, stream_id;
		} throttle; /* PERF_RECORD_THROTTLE, UNTHROTTLE */
	};
};

/* What one build-id feature entry says: this file, seen with this cpumode, had this build id. */
struct perfdata_build_id_entry {
	struct perfdata_build_id build_id;
	uint16_t misc;
	int32_t pid;
	const char *filename;
};

/* Texts are NULL where the file lacks the feature; they live as long as the struct perfdata. */
struct perfdata_info {
	const char *hostname, *os_release, *perf_version, *arch, *cmdline;
	uint32_t cpus_online, cpus_available;
	uint64_t first_sample_ns, last_sample_ns; /* SAMPLE_TIME; 0 where absent */
	uint32_t clockid; /* with has_clockid */
	bool has_clockid;
	uint64_t start_realtime_ns; /* when it began, ns since 1970; 0: it does not say */
	bool pipe_mode, compressed;
	const struct perfdata_build_id_entry *build_ids;
	size_t nbuild_ids;
};

/* Everything that did not come through as a record, counted. */
struct perfdata_stats {
	uint64_t records, samples;
	uint64_t lost_events; /* sum of PERF_RECORD_LOST */
	uint64_t lost_samples; /* sum of PERF_RECORD_LOST_SAMPLES */
	uint64_t throttled;
	uint64_t unknown_types; /* records of types this reader does not know, skipped */
	uint64_t damaged; /* records whose content does not fit their size, skipped */
	uint64_t unknown_features; /* header feature sections that are not known, or unreadable */
	uint64_t out_of_order; /* records older than one already handed out */
	uint64_t rounds; /* FINISHED_ROUND records */
	uint64_t truncated_at; /* file offset where the data ended too early; 0: it did not */
	bool unfinished; /* data size 0 in the header: the recorder did not come to its end */
};

/*
 * Opens a recording. fd is borrowed and must stay open; it may be a pipe, then only pipe mode is accepted.
 * 0; -EBADMSG (not perf.data, or byte-swapped), -E2BIG, -ENOMEM, -errno, with *err (may be NULL) filled.
 */
int perfdata_open(int fd, struct perfdata **ret_data, struct parse_error *err);
void perfdata_close(struct perfdata *d);

/*
 * The next record in time order (perf's rounds: FINISHED_ROUND bounds how far is looked ahead). 1: *ret_record is filled;
 * 0: end of the data; -errno with *err: nothing more can be read, all readable records were handed out before.
 * FINISHED_ROUND, COMPRESSED, HEADER_*, ID_INDEX and the like are taken in by the reader and not handed out.
 * - Records without a time (perf's own, of what it found in /proc) go out where they stand in the file, before what waits
 *   for its round; so does everything where an event lacks sample_id_all. perf does the same.
 * - A sample of PERF_SAMPLE_READ goes out once for each counter that moved, with event, id and period of that counter.
 * - Rounds of more than 64 MiB cost a second reading of their records, or, where that cannot be (a pipe, compressed), order:
 *   the older half goes out early. So do rounds of more than a million records.
 */
int perfdata_next(struct perfdata *d, struct perfdata_record *ret_record, struct parse_error *err);

/* Events: complete for file mode after open; in pipe mode they grow while records are read. */
const struct perfdata_event *perfdata_events(const struct perfdata *d, size_t *ret_n);
const struct perfdata_info *perfdata_info(const struct perfdata *d);
const struct perfdata_stats *perfdata_stats(const struct perfdata *d);

#endif
