/*
 * Shared by the parts of perfdata_writer: header and records (perfdata_writer.c), features
 * (perfdata_writer_features.c), changes to an existing file
 * (perfdata_writer_repair.c).
 */
#ifndef RECORDING_PERFDATA_WRITER_IMPL_H
#define RECORDING_PERFDATA_WRITER_IMPL_H

#include "base/outbuf.h"
#include "recording/perfdata_format.h"
#include "recording/perfdata_writer.h"

#include <stdbool.h>

#define PERFDATA_PREFACE_MAGIC 0x46757063666f7270ULL /* "profcpuF" */

/* Places of the features' contents, by their bits. A size may be 0. */
struct perfdata_features {
	uint64_t bits[PERFDATA_FEATURES_MAX / 64];
	struct perfdata_section sections[PERFDATA_FEATURE_LAST_KNOWN + 1];
};

/* Directly before the data. `count` sections, in the order of the bits, are before it. */
struct perfdata_preface {
	uint64_t bits[PERFDATA_FEATURES_MAX / 64];
	uint64_t count;
	uint64_t magic;
};
_Static_assert(sizeof(struct perfdata_preface) == 48, "on-disk layout of ours");

static inline bool perfdata_feature_is_set(const struct perfdata_features *f, unsigned feature)
{
	return f->bits[feature / 64] >> feature % 64 & 1;
}

static inline void perfdata_feature_set(struct perfdata_features *f, unsigned feature,
					uint64_t offset, uint64_t size)
{
	f->bits[feature / 64] |= 1ULL << feature % 64;
	f->sections[feature] = (struct perfdata_section){offset, size};
}

/*
 * Appends the contents of all features that are known at the start to out, and notes their places
 * in f. The first byte of out is at file offset `base`. Errors stay in out.
 */
void perfdata_write_features(struct outbuf *out, uint64_t base,
			     const struct perfdata_writer_event *events, size_t nevents,
			     const struct perfdata_writer_info *info, struct perfdata_features *f);

/*
 * Writes the part after the data, which end at data_end: the table, SAMPLE_TIME and an empty
 * BUILD_ID. When these are on disk, it writes the header with the data's size. f is that of the
 * preface. 0 or -errno.
 */
int perfdata_write_end(int fd, struct perfdata_file_header *header, struct perfdata_features *f,
		       uint64_t data_end, uint64_t first_sample_ns, uint64_t last_sample_ns);

#endif
