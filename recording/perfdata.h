/*
 * Reader of perf.data files, in file or pipe mode. Supports files of `perf record` (Debian's 5.10,
 * 6.1, 6.12 and others) and of profcpu.
 *
 * Format: Linux tools/perf/Documentation/perf.data-file-format.txt and
 * include/uapi/linux/perf_event.h.
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

/* One event (attr) of the file. Pointers are valid as long as the struct perfdata. */
struct perfdata_event {
	struct perf_event_attr attr; /* fields missing in a short attr of the file are 0 */
	/*
	 * From EVENT_DESC or EVENT_UPDATE, otherwise perf's name for type and config; at worst
	 * "unknown".
	 */
	const char *name;
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
	/* As recorded, leaf first, with PERF_CONTEXT_* marks; NULL: none. */
	const uint64_t *callchain;
	size_t ncallchain;
	const void *raw; /* payload of tracepoints */
	uint32_t raw_bytes;
	const uint64_t *user_regs; /* popcount(attr.sample_regs_user) words; NULL: none (abi 0) */
	uint64_t user_abi;
	const void *user_stack; /* dyn_size bytes; NULL: none */
	uint64_t user_stack_bytes;
	const uint64_t *branches; /* nbranches x {from, to, flags} */
	uint64_t nbranches;
};

struct perfdata_mmap {
	uint64_t addr, len, pgoff;
	/*
	 * From mmap2; 0 for the older record, whose maps are executable unless misc has MMAP_DATA.
	 */
	uint32_t prot, flags;
	uint32_t maj, min;
	uint64_t ino, ino_generation; /* 0 if the record has a build id instead */
	struct perfdata_build_id build_id;
	const char *filename;
};

/*
 * A parsed record. `type` (PERF_RECORD_*) selects the valid union member. Pointers point into
 * the reader's buffers and are valid until the next perfdata_next.
 */
struct perfdata_record {
	uint32_t type;
	/* PERF_RECORD_MISC_*; & PERF_RECORD_MISC_CPUMODE_MASK: kernel, user, ... */
	uint16_t misc;
	bool again;            /* the sample that was returned last, for another counter */
	uint32_t event;        /* index into perfdata_events; 0 if the file has only one */
	uint64_t time_ns;      /* from the sample or sample_id; 0: unknown */
	int32_t pid, tid, cpu; /* from the sample or the record itself; -1: unknown */
	uint64_t file_off;     /* offset of the record, or of its block in a compressed file */
	const struct perf_event_header *header; /* the whole raw record, header->size bytes */
	union {
		struct perfdata_sample sample; /* PERF_RECORD_SAMPLE */
		struct perfdata_mmap mmap;     /* PERF_RECORD_MMAP, MMAP2 */
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
			uint16_t ksym_type; /* PERF_RECORD_KSYMBOL_TYPE_* */
			uint16_t flags;     /* & 1: unregistered */
			const char *name;
		} ksymbol;
		struct {
			uint64_t id, stream_id;
		} throttle; /* PERF_RECORD_THROTTLE, UNTHROTTLE */
	};
};

/* Entry of the build-id feature: the build id of a file that was seen with this cpumode. */
struct perfdata_build_id_entry {
	struct perfdata_build_id build_id;
	uint16_t misc;
	int32_t pid;
	const char *filename;
};

/*
 * Facts from the file's features. Texts are NULL if the file lacks the feature, and valid as long
 * as the struct perfdata.
 */
struct perfdata_info {
	const char *hostname, *os_release, *perf_version, *arch, *cmdline;
	uint32_t cpus_online, cpus_available;
	uint64_t first_sample_ns, last_sample_ns; /* SAMPLE_TIME; 0: none */
	uint32_t clockid;                         /* valid with has_clockid */
	bool has_clockid;
	uint64_t start_realtime_ns; /* start of the recording, ns since 1970; 0: unknown */
	bool pipe_mode, compressed;
	const struct perfdata_build_id_entry *build_ids;
	size_t nbuild_ids;
};

/* Counters of records, and of everything that was not returned as a record. */
struct perfdata_stats {
	uint64_t records, samples;
	uint64_t lost_events;  /* sum of PERF_RECORD_LOST */
	uint64_t lost_samples; /* sum of PERF_RECORD_LOST_SAMPLES */
	uint64_t throttled;
	uint64_t unknown_types;    /* skipped records of unknown types */
	uint64_t damaged;          /* skipped records whose content does not fit their size */
	uint64_t unknown_features; /* feature sections that are unknown or unreadable */
	uint64_t out_of_order;     /* records older than one that was already returned */
	uint64_t rounds;
	/* File offset at which the data ended too early; 0: they did not. */
	uint64_t truncated_at;
	bool unfinished; /* the header has data size 0: the recorder did not finish */
};

/*
 * Opens a perf.data. fd is borrowed and must stay open. It may be a pipe, which permits only pipe
 * mode. 0; -EBADMSG: not perf.data, or byte-swapped; -E2BIG, -ENOMEM, -errno. After an error *err
 * (may be NULL) is filled.
 */
int perfdata_open(int fd, struct perfdata **ret_data, struct parse_error *err);
/* memory: bytes that are left, from which the header, the ids and the features take an eighth. */
int perfdata_open_within(int fd, uint64_t memory, struct perfdata **ret_data,
			 struct parse_error *err);
void perfdata_close(struct perfdata *d);

/*
 * Limits the memory for records that wait to be sorted and for compression to about `bytes`, if
 * this is less than usual. A round that needs more is read again, or returned in a rougher order.
 */
void perfdata_limit_memory(struct perfdata *d, uint64_t bytes);

/* Result of perfdata_merge. */
struct perfdata_merged {
	uint64_t files;         /* that were read, without records too */
	uint64_t damaged;       /* of them: missing, cut or damaged */
	char first_damaged[16]; /* name of the first of these; "": none */
};

/*
 * Merges a directory of `perf record --threads` into one perf.data in file mode. The directory has
 * `data`, with the header, and data.0, data.1 and so on, with records only. dir_fd is borrowed.
 * out_fd is an empty file for reading and writing. The readable part of a damaged file is merged.
 *
 * 0; -EBADMSG: `data` is not perf.data; -E2BIG: too many or too large files; -ENOMEM, -errno. After
 * an error *err (may be NULL) is filled.
 */
int perfdata_merge(int dir_fd, int out_fd, struct perfdata_merged *ret_merged,
		   struct parse_error *err);

/*
 * Reads the next record in the order of time. Returns 1: *ret_record is filled; 0: end of the data;
 * -errno with *err: reading failed, and all readable records were returned before.
 *
 * FINISHED_ROUND records limit how far the reader reads ahead, as in perf. The reader handles
 * FINISHED_ROUND, COMPRESSED, HEADER_*, ID_INDEX and similar records itself and does not return
 * them.
 *
 * - Records without a time (which perf makes from /proc) are returned at their place in the file,
 *   before records that wait for their round. If an event lacks sample_id_all, this holds for all
 *   records. perf does the same.
 *
 * - A sample with PERF_SAMPLE_READ is returned once for each counter that moved, with that
 *   counter's event, id and period. All but the first have `again`.
 *
 * - Rounds of more than 64 MiB are read twice. If that is impossible (pipe, compressed file), the
 *   older half is returned early, possibly out of order. This also happens to rounds of more than a
 *   million records.
 */
int perfdata_next(struct perfdata *d, struct perfdata_record *ret_record, struct parse_error *err);

/*
 * Return events, facts and counters. In file mode all events are known after perfdata_open; in pipe
 * mode further events appear while records are read.
 */
const struct perfdata_event *perfdata_events(const struct perfdata *d, size_t *ret_n);
const struct perfdata_info *perfdata_info(const struct perfdata *d);
const struct perfdata_stats *perfdata_stats(const struct perfdata *d);

#endif
