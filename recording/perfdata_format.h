/*
 * On-disk format of perf.data, beyond linux/perf_event.h. Little-endian; offsets count from the
 * start of the file. Sources: Linux tools/perf/Documentation/perf.data-file-format.txt and
 * tools/lib/perf/include/perf/event.h.
 */
#ifndef RECORDING_PERFDATA_FORMAT_H
#define RECORDING_PERFDATA_FORMAT_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#define PERFDATA_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */
#define PERFDATA_MAGIC_SWAPPED 0x50455246494c4532ULL
#define PERFDATA_MAGIC_V1 0x454c494646524550ULL /* "PERFFILE", before Linux 3.5 */

struct perfdata_section {
	uint64_t offset, size;
};

#define PERFDATA_FEATURES_MAX 256

/*
 * Header in file mode. After the data follows one section for each bit in features, in the order of
 * the bits.
 */
struct perfdata_file_header {
	uint64_t magic;
	uint64_t size;      /* size of this header */
	uint64_t attr_size; /* size of an entry in attrs: a perf_event_attr and a section of ids */
	struct perfdata_section attrs, data, event_types;
	uint64_t features[PERFDATA_FEATURES_MAX / 64];
};
_Static_assert(sizeof(struct perfdata_file_header) == 104, "as perf writes it");
_Static_assert(offsetof(struct perfdata_file_header, data) == 40, "as perf writes it");

/*
 * Header in pipe mode: the same first two words. Records follow, which also carry attrs and
 * features.
 */
struct perfdata_pipe_header {
	uint64_t magic;
	uint64_t size; /* size of this header: 16 */
};
_Static_assert(sizeof(struct perfdata_pipe_header) == 16, "as perf writes it");

enum perfdata_feature {
	PERFDATA_TRACING_DATA = 1,
	PERFDATA_BUILD_ID = 2,
	PERFDATA_HOSTNAME = 3,
	PERFDATA_OSRELEASE = 4,
	PERFDATA_VERSION = 5,
	PERFDATA_ARCH = 6,
	PERFDATA_NRCPUS = 7,
	PERFDATA_CPUDESC = 8,
	PERFDATA_CPUID = 9,
	PERFDATA_TOTAL_MEM = 10,
	PERFDATA_CMDLINE = 11,
	PERFDATA_EVENT_DESC = 12,
	PERFDATA_SAMPLE_TIME = 21,
	/* Only the clock's resolution. The attrs and CLOCK_DATA name the clock. */
	PERFDATA_CLOCKID = 23,
	PERFDATA_DIR_FORMAT = 24, /* the data is in the files of a directory */
	PERFDATA_COMPRESSED = 27,
	PERFDATA_CLOCK_DATA = 29,
	PERFDATA_FEATURE_LAST_KNOWN = 33, /* PMU_CAPS is 31, CPU_DOMAIN_INFO 32, E_MACHINE 33 */
};

/* Types of records that perf itself writes. */
enum perfdata_user_type {
	PERFDATA_RECORD_USER = 64, /* first type that is not the kernel's */
	PERFDATA_RECORD_HEADER_ATTR = 64,
	/* u32 size of the payload that follows, which is padded to 8 */
	PERFDATA_RECORD_HEADER_TRACING_DATA = 66,
	PERFDATA_RECORD_HEADER_BUILD_ID = 67,
	PERFDATA_RECORD_FINISHED_ROUND = 68,
	PERFDATA_RECORD_AUXTRACE = 71, /* u64 size of the payload that follows */
	PERFDATA_RECORD_EVENT_UPDATE = 78,
	PERFDATA_RECORD_HEADER_FEATURE = 80,
	PERFDATA_RECORD_COMPRESSED = 81,
	/* u64 size of the compressed bytes, which are padded to 8 */
	PERFDATA_RECORD_COMPRESSED2 = 83,
	PERFDATA_RECORD_LAST_KNOWN = 86, /* SCHEDSTAT_DOMAIN */
};

/*
 * misc of the FINISHED_ROUND at the end of profcpu's data. It shows that no record follows, even if
 * the recorder was killed before it updated the header. perf ignores it.
 */
#define PERFDATA_MISC_LAST_ROUND 0x5046

#define PERFDATA_EVENT_UPDATE_NAME 2 /* perf_record_event_update.type */

#define PERFDATA_RECORD_BYTES_MAX 65535 /* perf_event_header.size has 16 bits */

/* Entry of the feature BUILD_ID, and record HEADER_BUILD_ID. A file name follows. */
struct perfdata_build_id_head {
	struct perf_event_header header;
	int32_t pid;
	uint8_t build_id[20];
	uint8_t build_id_size; /* valid if header.misc has PERFDATA_MISC_BUILD_ID_SIZE */
	uint8_t reserved[3];
};
_Static_assert(sizeof(struct perfdata_build_id_head) == 36, "as perf writes it");
#define PERFDATA_MISC_BUILD_ID_SIZE (1 << 15)

/*
 * LOST_SAMPLES with this bit: a filter that the user requested dropped the samples, so they are not
 * lost.
 */
#define PERFDATA_MISC_LOST_SAMPLES_BPF (1 << 15)

#endif
