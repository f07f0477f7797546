/* What the parts of the perf.data writer share. */
#ifndef RECORDING_PERFDATA_WRITER_IMPL_H
#define RECORDING_PERFDATA_WRITER_IMPL_H

#include "base/outbuf.h"
#include "recording/perfdata_format.h"
#include "recording/perfdata_writer.h"

#include <stdbool.h>

#define PERFDATA_PREFACE_MAGIC 0x46757063666f7270ULL /* "profcpuF" */

/* Features by their bits: where their content is. size 0 is possible. */
struct perfdata_features {
	uint64_t bits[PERFDATA_FEATURES_MAX / 64];
	struct perfdata_section sections[PERFDATA_FEATURE_LAST_KNOWN + 1];
};

/* Lies right before the data; `count` sections, in order of the bits, lie before it. */
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
 * Appends the content of all features that are known at the start to out, whose first byte will lie
 * at file offset `base`, and notes them in f. Errors stick in out.
 */
void perfdata_write_features(struct outbuf *out, uint64_t base,
			     const struct perfdata_writer_event *events, size_t nevents,
			     const struct perfdata_writer_info *info, struct perfdata_features *f);

/*
 * Writes what follows the data, which ends at data_end: the table, SAMPLE_TIME, an empty BUILD_ID,
 * and, when that is on the disk, the header with the data's size. f is that of the preface. 0 or
 * -errno.
 */
int perfdata_write_end(int fd, struct perfdata_file_header *header, struct perfdata_features *f,
		       uint64_t data_end, uint64_t first_sample_ns, uint64_t last_sample_ns);

#endif
