/* Reads the header, the events with their ids, and where features are. */
#include "base/file.h"
#include "recording/perfdata_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERFDATA_ATTR_ENTRY_MAX 4096 /* bytes; perf writes 144 today */
#define PERFDATA_ATTR_PART_MIN PERF_ATTR_SIZE_VER0

int perfdata_read_attr(struct reader *r, size_t max_bytes, struct perf_event_attr *ret_attr)
{
	struct perf_event_attr attr = {0};
	struct reader peek = *r;
	uint32_t size;

	reader_skip(&peek, offsetof(struct perf_event_attr, size));
	size = reader_u32(&peek);
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	const void *p = size <= max_bytes ? reader_bytes(r, size) : NULL;

	if (!p || size < PERF_ATTR_SIZE_VER0)
		return -EBADMSG;
	memcpy(&attr, p, size < sizeof(attr) ? size : sizeof(attr));
	attr.size = size;
	*ret_attr = attr;
	return 0;
}

/* Counts the words of sample_id before `until`; all of them if `until` is 0. */
static unsigned int perfdata_trailer_words(uint64_t type)
{
	return (unsigned int)__builtin_popcountll(
		type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
}

static struct perfdata_layout perfdata_layout_of(const struct perf_event_attr *attr)
{
	uint64_t type = attr->sample_type;
	struct perfdata_layout l = {0};

	if (type & PERF_SAMPLE_TIME)
		l.time_off = (uint16_t)(8 + 8 * __builtin_popcountll(
							type & (PERF_SAMPLE_IDENTIFIER |
								PERF_SAMPLE_IP | PERF_SAMPLE_TID)));
	if (!attr->sample_id_all)
		return l;
	l.trailer_bytes = (uint16_t)(8 * perfdata_trailer_words(type));
	if (type & PERF_SAMPLE_TIME)
		l.trailer_time =
			(uint16_t)(8 * perfdata_trailer_words(type & ~(uint64_t)PERF_SAMPLE_TID));
	return l;
}

/* Finds the id's place in records. All events must have the same place as the first one. */
static void perfdata_find_ids(struct perfdata *d)
{
	const struct perf_event_attr *attr = &d->events.v[0].attr;
	uint64_t type = attr->sample_type;

	d->id_off = d->id_back = 0;
	if (type & PERF_SAMPLE_IDENTIFIER) {
		d->id_off = 8;
		d->id_back = 8;
	} else if (type & PERF_SAMPLE_ID) {
		d->id_off =
			(uint16_t)(8 + 8 * __builtin_popcountll(
						   type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
							   PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR)));
		d->id_back = (uint16_t)(8 * perfdata_trailer_words(type & (PERF_SAMPLE_ID |
									   PERF_SAMPLE_STREAM_ID |
									   PERF_SAMPLE_CPU)));
	}
	if (!attr->sample_id_all)
		d->id_back = 0;
}

void perfdata_events_changed(struct perfdata *d)
{
	if (!d->events.len)
		return;
	perfdata_find_ids(d);
	for (; d->nevents_seen < d->events.len; d->nevents_seen++) {
		const struct perf_event_attr *attr = &d->events.v[d->nevents_seen].attr;

		d->ordered = attr->sample_id_all && (d->ordered || !d->nevents_seen);
		d->asks_build_ids |= attr->build_id;
	}
	const struct perf_event_attr *first = &d->events.v[0].attr;

	if (first->use_clockid && !d->info.has_clockid) {
		d->info.clockid = (uint32_t)first->clockid;
		d->info.has_clockid = true;
	}
}

int perfdata_add_event(struct perfdata *d, const struct perf_event_attr *attr, const uint64_t *ids,
		       size_t nids)
{
	struct perfdata_event event = {.attr = *attr, .ids = ids, .nids = nids};
	char name[128];
	int r;

	if (d->events.len >= PERFDATA_EVENTS_MAX || nids > PERFDATA_IDS_MAX - d->nids)
		return -E2BIG;
	if (!perfdata_meta_take(d, nids * PERFDATA_ID_BYTES))
		return -ENOMEM;
	perfdata_default_name(attr, name, sizeof(name));
	event.name = perfdata_text(d, name, strlen(name));
	if (!event.name || vec_reserve(&d->events, 1) || vec_reserve(&d->layouts, 1))
		return -ENOMEM;
	for (size_t i = 0; i < nids; i++) {
		r = hashmap_put(&d->ids, ids[i], (uint32_t)d->events.len);
		if (r)
			return r;
	}
	memset(d->id_cache, 0, sizeof(d->id_cache));
	d->nids += nids;
	d->events.v[d->events.len++] = event;
	d->layouts.v[d->layouts.len++] = perfdata_layout_of(attr);
	return 0;
}

static int perfdata_read_event(struct perfdata *d, struct reader entry, uint64_t at,
			       struct parse_error *err)
{
	size_t part = reader_left(&entry) - sizeof(struct perfdata_section);
	struct perf_event_attr attr;
	struct perfdata_section s;

	if (perfdata_read_attr(&entry, part, &attr))
		return parse_fail(err, -EBADMSG, "an event's attributes have a wrong size", at);
	reader_seek(&entry, part);
	s.offset = reader_u64(&entry);
	s.size = reader_u64(&entry);
	if (s.size / 8 > PERFDATA_IDS_MAX)
		return parse_fail(err, -E2BIG, "an event has too many ids", s.offset);
	uint64_t *ids = perfdata_meta_alloc(d, s.size / 8 * 8);

	if (!ids)
		return parse_fail(err, -ENOMEM, "the ids of its events take too much memory",
				  s.offset);
	int code = s.offset > INT64_MAX ? -ENODATA
					: file_pread_all(d->in.fd, ids, s.size / 8 * 8, s.offset);

	if (code)
		return parse_fail(err, code == -ENODATA ? -EBADMSG : code,
				  "the ids of an event are not in the file", s.offset);
	code = perfdata_add_event(d, &attr, ids, s.size / 8);
	return code ? parse_fail(err, code, "the file has too many events", s.offset) : 0;
}

static int perfdata_read_attrs(struct perfdata *d, const struct perfdata_file_header *h,
			       struct parse_error *err)
{
	const struct perfdata_section *s = &h->attrs;

	if (h->attr_size < PERFDATA_ATTR_PART_MIN + sizeof(*s) ||
	    h->attr_size > PERFDATA_ATTR_ENTRY_MAX)
		return parse_fail(err, -EBADMSG, "the header has a wrong size for attributes",
				  offsetof(struct perfdata_file_header, attr_size));
	uint64_t n = s->size / h->attr_size;

	if (!n || s->offset > INT64_MAX)
		return parse_fail(err, -EBADMSG, "the header names no events", s->offset);
	if (n > PERFDATA_EVENTS_MAX)
		return parse_fail(err, -E2BIG, "the header names too many events", s->offset);
	int r = 0;

	for (uint64_t i = 0; i < n && !r; i++) {
		unsigned char entry[PERFDATA_ATTR_ENTRY_MAX];
		uint64_t at = s->offset + i * h->attr_size;

		r = file_pread_all(d->in.fd, entry, h->attr_size, at);
		if (r)
			return parse_fail(err, r == -ENODATA ? -EBADMSG : r,
					  "the attributes of the events are not in the file", at);
		r = perfdata_read_event(d, reader_of(entry, h->attr_size), at, err);
	}
	perfdata_events_changed(d);
	return r;
}

/*
 * An unreadable feature loses only its own content. The bytes of all count as memory, because many
 * may be in one place.
 */
static int perfdata_read_section(struct perfdata *d, uint64_t feature,
				 const struct perfdata_section *s)
{
	if (!perfdata_feature_is_read(feature))
		return perfdata_feature(d, feature, NULL, 0);
	if (s->size > PERFDATA_FEATURE_BYTES_MAX || s->offset > INT64_MAX ||
	    !perfdata_meta_take(d, s->size))
		return -E2BIG;
	void *bytes = malloc(s->size ? s->size : 1);

	if (!bytes)
		return -ENOMEM;
	int r = file_pread_all(d->in.fd, bytes, s->size, s->offset);

	if (!r)
		r = perfdata_feature(d, feature, bytes, s->size);
	free(bytes);
	return r;
}

static void perfdata_read_features(struct perfdata *d, const struct perfdata_file_header *h)
{
	uint64_t at = h->data.offset + h->data.size;

	for (unsigned int bit = 0; bit < PERFDATA_FEATURES_MAX; bit++) {
		struct perfdata_section s;

		if (!(h->features[bit / 64] >> bit % 64 & 1))
			continue;
		if (at > INT64_MAX || file_pread_all(d->in.fd, &s, sizeof(s), at) ||
		    perfdata_read_section(d, bit, &s))
			d->stats.unknown_features++;
		at += sizeof(s);
	}
}

static int perfdata_read_file_header(struct perfdata *d, uint64_t size, struct parse_error *err)
{
	struct perfdata_file_header h = {0};
	size_t without_features = offsetof(struct perfdata_file_header, features);
	struct stat st;
	int r;

	if (!d->in.seekable)
		return parse_fail(err, -EBADMSG,
				  "this perf.data can only be read from a file, not from a pipe",
				  8);
	if (size != sizeof(h) && size != without_features)
		return parse_fail(err, -EBADMSG, "the header has an unknown size", 8);
	r = file_pread_all(d->in.fd, &h, size, 0);
	if (r)
		return parse_fail(err, r == -ENODATA ? -EBADMSG : r,
				  "the file ends within its header", size);
	r = perfdata_read_attrs(d, &h, err);
	if (r)
		return r;
	if (h.data.offset < size || h.data.offset > INT64_MAX || h.data.size > INT64_MAX)
		return parse_fail(err, -EBADMSG, "the header has an impossible place of the data",
				  offsetof(struct perfdata_file_header, data));
	if (fstat(d->in.fd, &st))
		return parse_fail(err, -errno, "the file could not be read", 0);
	d->stats.unfinished = !h.data.size;
	d->in.read_off = h.data.offset;
	d->in.end_off = h.data.size ? h.data.offset + h.data.size : UINT64_MAX;
	d->in.stop_off =
		d->in.end_off < (uint64_t)st.st_size ? d->in.end_off : (uint64_t)st.st_size;
	if (d->in.stop_off < d->in.read_off)
		d->in.stop_off = d->in.read_off;
	if (h.data.size)
		perfdata_read_features(d, &h);
	return 0;
}

/* Small files get small chunks. */
static size_t perfdata_chunk_size(const struct perfdata_input *in)
{
	uint64_t bytes = in->seekable ? in->stop_off - in->read_off : PERFDATA_CHUNK_BYTES;

	return bytes >= PERFDATA_CHUNK_BYTES  ? PERFDATA_CHUNK_BYTES
	       : bytes < PERFDATA_CHUNK_LEAST ? PERFDATA_CHUNK_LEAST
					      : (bytes + 7) & ~(uint64_t)7;
}

int perfdata_read_header(struct perfdata *d, struct parse_error *err)
{
	struct perfdata_pipe_header h = {0};
	int r;

	d->in.end_off = UINT64_MAX;
	d->in.stop_off = UINT64_MAX;
	d->pool.chunk_bytes = PERFDATA_CHUNK_BYTES;
	d->pool.held_max = PERFDATA_HELD_BYTES_MAX;
	d->queue.max = PERFDATA_QUEUE_MAX;
	d->in.seekable = lseek(d->in.fd, 0, SEEK_CUR) >= 0;
	if (d->in.seekable) {
		(void)posix_fadvise(d->in.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		r = file_pread_all(d->in.fd, &h, sizeof(h), 0);
		r = r == -ENODATA ? 0 : r;
	} else {
		r = perfdata_input_fill(d, sizeof(h));
		if (r > 0)
			memcpy(&h, d->in.chunk->bytes, sizeof(h));
		d->in.pos = r > 0 ? sizeof(h) : 0;
	}
	if (r < 0)
		return parse_fail(err, r,
				  r == -ENOMEM ? "out of memory" : "the file could not be read", 0);
	if (h.magic == PERFDATA_MAGIC_SWAPPED)
		return parse_fail(
			err, -EBADMSG,
			"this perf.data was recorded on a machine with the other byte order", 0);
	if (h.magic == PERFDATA_MAGIC_V1)
		return parse_fail(err, -EBADMSG,
				  "this perf.data has the format from before Linux 3.5", 0);
	if (h.magic != PERFDATA_MAGIC)
		return parse_fail(err, -EBADMSG, "this is not perf.data", 0);
	if (h.size != sizeof(h)) {
		r = perfdata_read_file_header(d, h.size, err);
		if (r)
			return r;
	} else {
		d->info.pipe_mode = true;
		if (d->in.seekable) {
			struct stat st;

			d->in.read_off = sizeof(h);
			if (!fstat(d->in.fd, &st) && st.st_size > 0)
				d->in.stop_off = (uint64_t)st.st_size;
		}
	}
	if (d->in.seekable)
		d->pool.chunk_bytes = perfdata_chunk_size(&d->in);
	return 0;
}
