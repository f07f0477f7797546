/*
 * Changes to existing files: finishes a file that was cut off, adds build ids, and blanks copies of
 * stacks.
 */
#include "recording/perfdata_writer_impl.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "recording/perfdata.h"
#include "recording/perfdata_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WALK_BYTES ((size_t)1 << 20)
#define WALK_GIVE_UP ((uint64_t)64 << 10) /* data that features may overwrite on a full disk */
#define BUILD_ID_TEXT_ALIGN 64
#define BUILD_ID_NAME_MAX 4095
/*
 * In a sample with these fields, the time is the third word after the header, or the fourth with an
 * identifier.
 */
#define SAMPLE_TIME_BITS (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define SAMPLE_TIME_OFFSET (sizeof(struct perf_event_header) + 2 * sizeof(uint64_t))

static int read_header(int fd, struct perfdata_file_header *header, struct parse_error *err)
{
	int r = file_pread_all(fd, header, sizeof(*header), 0);

	if (r && r != -ENODATA)
		return parse_fail(err, r, "the file could not be read", 0);
	if (r || header->magic != PERFDATA_MAGIC || header->size != sizeof(*header))
		return parse_fail(err, -EBADMSG, "this is not a perf.data file", 0);
	if (header->data.offset < sizeof(*header) || header->data.offset > INT64_MAX)
		return parse_fail(err, -EBADMSG, "the header has an impossible place of the data",
				  40);
	return 0;
}

static int read_preface(int fd, uint64_t data_offset, struct perfdata_features *f,
			struct parse_error *err)
{
	struct perfdata_section sections[PERFDATA_FEATURE_LAST_KNOWN + 1];
	struct perfdata_preface p;
	uint64_t at = data_offset - sizeof(p), count = 0;

	if (data_offset < sizeof(struct perfdata_file_header) + sizeof(p) ||
	    file_pread_all(fd, &p, sizeof(p), at) || p.magic != PERFDATA_PREFACE_MAGIC ||
	    p.count > PERFDATA_FEATURE_LAST_KNOWN + 1 || at < p.count * sizeof(sections[0]))
		return parse_fail(err, -EBADMSG, "this perf.data was not recorded by profcpu", at);
	at -= p.count * sizeof(sections[0]);
	if (file_pread_all(fd, sections, p.count * sizeof(sections[0]), at))
		return parse_fail(err, -EBADMSG, "the table of features could not be read", at);
	for (unsigned i = 0; i < PERFDATA_FEATURES_MAX; i++) {
		if (!(p.bits[i / 64] >> i % 64 & 1))
			continue;
		if (i > PERFDATA_FEATURE_LAST_KNOWN || count == p.count)
			return parse_fail(err, -EBADMSG, "the table of features is damaged", at);
		perfdata_feature_set(f, i, sections[count].offset, sections[count].size);
		count++;
	}
	return 0;
}

bool perfdata_is_ours(int fd)
{
	struct perfdata_file_header header;
	struct perfdata_features f = {0};

	return !read_header(fd, &header, NULL) && !read_preface(fd, header.data.offset, &f, NULL);
}

struct walk {
	uint64_t end; /* end of the last whole record, before the mark of the end */
	bool marked;  /* the mark was found; no record follows it */
	uint64_t first_sample_ns, last_sample_ns;
	size_t time_at; /* offset of the time in a sample; 0: unknown */
};

static void walk_sample(struct walk *walk, const unsigned char *record, size_t size)
{
	uint64_t time_ns;

	if (!walk->time_at || size < walk->time_at + sizeof(time_ns))
		return;
	memcpy(&time_ns, record + walk->time_at, sizeof(time_ns));
	if (!walk->first_sample_ns || time_ns < walk->first_sample_ns)
		walk->first_sample_ns = time_ns;
	if (time_ns > walk->last_sample_ns)
		walk->last_sample_ns = time_ns;
}

/*
 * Walks over the whole records in the buffer. Returns the bytes used; sets *stop when no record
 * follows.
 */
static size_t walk_buffer(struct walk *walk, const unsigned char *buf, size_t len, bool *stop)
{
	struct perf_event_header h;
	size_t pos = 0;

	while (len - pos >= sizeof(h)) {
		memcpy(&h, buf + pos, sizeof(h));
		if (h.size < sizeof(h) || h.size % 8 || !h.type) {
			*stop = true;
			break;
		}
		if (h.size > len - pos)
			break;
		if (h.type == PERFDATA_RECORD_FINISHED_ROUND &&
		    h.misc == PERFDATA_MISC_LAST_ROUND) {
			*stop = walk->marked = true;
			break;
		}
		if (h.type == PERF_RECORD_SAMPLE)
			walk_sample(walk, buf + pos, h.size);
		pos += h.size;
	}
	return pos;
}

/* Walks over records from start to at most limit. */
static int walk_records(int fd, uint64_t start, uint64_t limit, struct walk *walk)
{
	AUTO_FREE unsigned char *buf = malloc(WALK_BYTES);
	bool stop = false;

	if (!buf)
		return -ENOMEM;
	for (walk->end = start; !stop && walk->end < limit;) {
		uint64_t left = limit - walk->end;
		size_t len = left < WALK_BYTES ? (size_t)left : WALK_BYTES;
		int r = file_pread_all(fd, buf, len, walk->end);

		if (r)
			return r;
		size_t used = walk_buffer(walk, buf, len, &stop);

		walk->end += used;
		if (!used)
			break;
	}
	return 0;
}

static size_t find_time(int fd, const struct perfdata_file_header *header)
{
	struct perf_event_attr attr = {0};

	if (header->attrs.size < PERF_ATTR_SIZE_VER0 ||
	    header->attrs.offset >= header->data.offset ||
	    file_pread_all(fd, &attr, PERF_ATTR_SIZE_VER0, header->attrs.offset) ||
	    (attr.sample_type & SAMPLE_TIME_BITS) != SAMPLE_TIME_BITS)
		return 0;
	return SAMPLE_TIME_OFFSET +
	       (attr.sample_type & PERF_SAMPLE_IDENTIFIER ? sizeof(uint64_t) : 0);
}

/*
 * Ends the file after the last whole record before limit. *ret_cut: bytes of records before limit
 * that are lost.
 */
static int end_at(int fd, struct perfdata_file_header *header, struct perfdata_features *f,
		  uint64_t limit, uint64_t *ret_end, uint64_t *ret_cut)
{
	struct walk walk = {.time_at = find_time(fd, header)};
	int r = walk_records(fd, header->data.offset, limit, &walk);

	if (!r && ftruncate(fd, (off_t)walk.end))
		r = -errno;
	*ret_end = walk.end;
	*ret_cut = walk.marked ? 0 : limit - walk.end;
	return r ? r
		 : perfdata_write_end(fd, header, f, walk.end, walk.first_sample_ns,
				      walk.last_sample_ns);
}

int perfdata_repair(int fd, uint64_t *ret_cut_bytes, struct parse_error *err)
{
	struct perfdata_file_header header;
	struct perfdata_features f = {0};
	struct stat st;
	uint64_t end = 0, cut = 0;
	int r = read_header(fd, &header, err);

	if (r)
		return r;
	if (fstat(fd, &st))
		return parse_fail(err, -errno, "the file could not be read", 0);
	uint64_t size = (uint64_t)st.st_size;

	if (header.data.size && header.data.size <= size &&
	    header.data.offset <= size - header.data.size) {
		if (ret_cut_bytes)
			*ret_cut_bytes = 0;
		return 0;
	}
	r = read_preface(fd, header.data.offset, &f, err);
	if (r)
		return r;
	r = end_at(fd, &header, &f, size, &end, &cut);
	if ((r == -ENOSPC || r == -EDQUOT || r == -EFBIG) && end > header.data.offset) {
		r = end_at(fd, &header, &f,
			   end - header.data.offset > WALK_GIVE_UP ? end - WALK_GIVE_UP
								   : header.data.offset,
			   &end, &cut);
		cut = size - end;
	}
	if (r)
		return parse_fail(err, r, "the file could not be written", end);
	if (ret_cut_bytes)
		*ret_cut_bytes = cut;
	return 0;
}

static void put_build_id(struct outbuf *out, const struct perfdata_build_id_entry *e)
{
	static const char zeros[BUILD_ID_TEXT_ALIGN];
	size_t len = strnlen(e->filename, BUILD_ID_NAME_MAX);
	size_t padded = (len + BUILD_ID_TEXT_ALIGN) & ~(size_t)(BUILD_ID_TEXT_ALIGN - 1);
	struct perfdata_build_id_head head = {
		.header = {.misc = (uint16_t)((e->misc & PERF_RECORD_MISC_CPUMODE_MASK) |
					      PERFDATA_MISC_BUILD_ID_SIZE)},
		.pid = e->pid,
		.build_id_size = e->build_id.len < PERFDATA_BUILD_ID_MAX ? e->build_id.len
									 : PERFDATA_BUILD_ID_MAX,
	};

	head.header.size = (uint16_t)(sizeof(head) + padded);
	memcpy(head.build_id, e->build_id.bytes, head.build_id_size);
	outbuf_put(out, &head, sizeof(head));
	outbuf_put(out, e->filename, len);
	outbuf_put(out, zeros, padded - len);
}

/*
 * Returns the offset of BUILD_ID in the table after the data. It follows the features with lower
 * bits.
 */
static uint64_t build_id_slot(const struct perfdata_file_header *h)
{
	uint64_t lower = h->features[0] & ((1ULL << PERFDATA_BUILD_ID) - 1);

	return h->data.offset + h->data.size +
	       (uint64_t)__builtin_popcountll(lower) * sizeof(struct perfdata_section);
}

int perfdata_set_build_ids(int fd, const struct perfdata_build_id_entry *entries, size_t n,
			   struct parse_error *err)
{
	struct perfdata_features f = {0};
	struct perfdata_file_header header;
	struct perfdata_section section = {0};
	struct outbuf out = outbuf_to(-1);
	struct stat st;
	int r = read_header(fd, &header, err);

	if (!r)
		r = read_preface(fd, header.data.offset, &f, err);
	if (r)
		return r;
	if (!header.data.size || header.data.size > INT64_MAX - header.data.offset ||
	    !(header.features[0] >> PERFDATA_BUILD_ID & 1))
		return parse_fail(err, -EBADMSG, "this perf.data is not finished", 48);
	if (fstat(fd, &st))
		return parse_fail(err, -errno, "the file could not be read", 0);
	for (size_t i = 0; i < n; i++)
		put_build_id(&out, &entries[i]);
	r = out.error;
	/*
	 * Write the content first and then its place, in one small write. A crash or power cut in
	 * between changes nothing.
	 */
	section = (struct perfdata_section){(uint64_t)st.st_size, out.len};
	if (!r)
		r = file_pwrite_all(fd, out.data, out.len, section.offset);
	if (!r)
		r = file_sync(fd);
	if (!r)
		r = file_pwrite_all(fd, &section, sizeof(section), build_id_slot(&header));
	if (!r)
		r = file_sync(fd);
	(void)outbuf_close(&out);
	return r ? parse_fail(err, r, "the build ids could not be written", section.offset) : 0;
}

/* Overwrites a part of a record with zeros. Returns 0 or -errno. */
static int blank_part(int fd, const struct perfdata_record *record, const void *part, size_t bytes)
{
	static const unsigned char zeros[PERFDATA_RECORD_BYTES_MAX_OUT];
	size_t at = (size_t)((const unsigned char *)part - (const unsigned char *)record->header);

	return file_pwrite_all(fd, zeros, bytes, record->file_off + at);
}

/* Blanks a sample's registers, copy, and the number of its valid bytes. */
static int blank_sample(int fd, const struct perfdata_record *record)
{
	const struct perfdata_sample *s = &record->sample;
	const unsigned char *copy = s->user_stack;
	struct perf_event_header here;
	uint64_t room;

	if (s->user_abi != PERF_SAMPLE_REGS_ABI_32 || !copy || !s->user_regs)
		return 0;
	/* The record of a compressed block is not at that place. */
	if (file_pread_all(fd, &here, sizeof(here), record->file_off) ||
	    memcmp(&here, record->header, sizeof(here)))
		return -EBADMSG;
	memcpy(&room, copy - sizeof(room), sizeof(room));
	int r = blank_part(fd, record, s->user_regs,
			   (size_t)(copy - sizeof(room) - (const unsigned char *)s->user_regs));

	return r ? r : blank_part(fd, record, copy, (size_t)room + sizeof(room));
}

int perfdata_blank_copies(int fd, struct parse_error *err)
{
	struct perfdata_record record;
	struct perfdata *d;
	int more = 0, r;

	if (!perfdata_is_ours(fd))
		return parse_fail(err, -EBADMSG, "this perf.data was not recorded by profcpu", 0);
	r = perfdata_open(fd, &d, err);
	if (r)
		return r;
	while (!r && (more = perfdata_next(d, &record, err)) > 0)
		if (record.type == PERF_RECORD_SAMPLE)
			r = blank_sample(fd, &record);
	perfdata_close(d);
	return r ? parse_fail(err, r, "the file could not be written", record.file_off) : more;
}
