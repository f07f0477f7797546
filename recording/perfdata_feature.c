/* Reads the features of a file: host, event names, build ids, clocks. */
#include "recording/perfdata_impl.h"

#include <errno.h>
#include <string.h>

#define PERFDATA_CMDLINE_WORDS_MAX 65536

bool perfdata_meta_take(struct perfdata *d, uint64_t bytes)
{
	if (bytes > d->meta_left)
		return false;
	d->meta_left -= bytes;
	return true;
}

void *perfdata_meta_alloc(struct perfdata *d, size_t size)
{
	return perfdata_meta_take(d, size) ? arena_alloc(&d->arena, size ? size : 1) : NULL;
}

char *perfdata_text(struct perfdata *d, const char *s, size_t len)
{
	return perfdata_meta_take(d, len + 1) ? arena_strndup(&d->arena, s, len) : NULL;
}

/*
 * Reads a perf_header_string: a u32 length that includes padding, and text with a NUL. NULL:
 * damaged.
 */
static const char *perfdata_string(struct reader *r, size_t *ret_len)
{
	uint32_t len = reader_u32(r);
	const char *s = reader_bytes(r, len);

	if (!s)
		return NULL;
	*ret_len = strnlen(s, len);
	return s;
}

static int perfdata_feature_text(struct perfdata *d, struct reader *r, const char **ret_text)
{
	size_t len;
	const char *s = perfdata_string(r, &len);

	if (!s)
		return -EBADMSG;
	const char *copy = perfdata_text(d, s, len);

	if (!copy)
		return -ENOMEM;
	*ret_text = copy;
	return 0;
}

/* Joins the words of the command line with blanks. */
static int perfdata_feature_cmdline(struct perfdata *d, struct reader *r)
{
	uint32_t n = reader_u32(r);
	size_t room = reader_left(r), used = 0, len;
	char *line = r->failed || n > PERFDATA_CMDLINE_WORDS_MAX ? NULL
								 : perfdata_meta_alloc(d, room + 1);

	if (!line)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		/* A length of 4 bytes precedes each word, so the blank always fits. */
		const char *s = perfdata_string(r, &len);

		if (!s)
			return -EBADMSG;
		if (i)
			line[used++] = ' ';
		memcpy(line + used, s, len);
		used += len;
	}
	line[used] = 0;
	d->info.cmdline = line;
	return 0;
}

/* Reads names of events, each with its ids, in the order of the attrs. */
static int perfdata_feature_event_desc(struct perfdata *d, struct reader *r)
{
	uint32_t n = reader_u32(r), attr_size = reader_u32(r);

	for (uint32_t i = 0; i < n; i++) {
		size_t len = 0;
		const uint32_t *event = NULL;
		uint32_t index = i;

		reader_skip(r, attr_size);
		uint32_t nids = reader_u32(r);
		const char *name = perfdata_string(r, &len);

		for (uint32_t k = 0; k < nids && !r->failed; k++) {
			uint64_t id = reader_u64(r);

			if (!event)
				event = hashmap_get(&d->ids, id);
		}
		if (r->failed || !name)
			return -EBADMSG;
		if (event)
			index = *event;
		const char *copy =
			index < d->events.len && len ? perfdata_text(d, name, len) : NULL;

		if (copy)
			d->events.v[index].name = copy;
	}
	return r->failed ? -EBADMSG : 0;
}

int perfdata_add_build_id(struct perfdata *d, const void *data, size_t len)
{
	struct perfdata_build_id_head h;
	struct perfdata_build_id_entry e = {0};

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, data, sizeof(h));
	const char *name = (const char *)data + sizeof(h);
	size_t name_len = strnlen(name, len - sizeof(h));

	e.misc = h.header.misc;
	e.pid = h.pid;
	e.build_id.len = PERFDATA_BUILD_ID_MAX;
	if (h.header.misc & PERFDATA_MISC_BUILD_ID_SIZE && h.build_id_size < PERFDATA_BUILD_ID_MAX)
		e.build_id.len = h.build_id_size;
	memcpy(e.build_id.bytes, h.build_id, e.build_id.len);
	/* The array of entries doubles. */
	if (!perfdata_meta_take(d, 2 * sizeof(e)))
		return -E2BIG;
	e.filename = perfdata_text(d, name, name_len);
	if (!e.filename || vec_push(&d->build_ids, e))
		return -ENOMEM;
	d->info.build_ids = d->build_ids.v;
	d->info.nbuild_ids = d->build_ids.len;
	return 0;
}

static int perfdata_feature_build_ids(struct perfdata *d, struct reader *r)
{
	while (reader_left(r)) {
		struct reader entry = *r;
		struct perf_event_header h;

		memset(&h, 0, sizeof(h));
		h.type = reader_u32(&entry);
		h.misc = reader_u16(&entry);
		h.size = reader_u16(&entry);
		const void *bytes = h.size >= sizeof(h) ? reader_bytes(r, h.size) : NULL;
		int code =
			!bytes || entry.failed ? -EBADMSG : perfdata_add_build_id(d, bytes, h.size);

		if (code)
			return code;
	}
	return 0;
}

static int perfdata_feature_clock_data(struct perfdata *d, struct reader *r)
{
	uint32_t version = reader_u32(r), clockid = reader_u32(r);

	if (r->failed || version != 1)
		return -EBADMSG;
	d->info.clockid = clockid;
	d->info.has_clockid = true;
	d->info.start_realtime_ns = reader_u64(r);
	return 0;
}

bool perfdata_feature_is_read(uint64_t feature)
{
	switch (feature) {
	case PERFDATA_BUILD_ID:
	case PERFDATA_HOSTNAME:
	case PERFDATA_OSRELEASE:
	case PERFDATA_VERSION:
	case PERFDATA_ARCH:
	case PERFDATA_NRCPUS:
	case PERFDATA_CMDLINE:
	case PERFDATA_EVENT_DESC:
	case PERFDATA_SAMPLE_TIME:
	case PERFDATA_CLOCK_DATA:
		return true;
	default:
		return false;
	}
}

int perfdata_feature(struct perfdata *d, uint64_t feature, const void *data, size_t len)
{
	struct reader r = reader_of(data, len);
	struct perfdata_info *info = &d->info;

	switch (feature) {
	case PERFDATA_BUILD_ID:
		return perfdata_feature_build_ids(d, &r);
	case PERFDATA_HOSTNAME:
		return perfdata_feature_text(d, &r, &info->hostname);
	case PERFDATA_OSRELEASE:
		return perfdata_feature_text(d, &r, &info->os_release);
	case PERFDATA_VERSION:
		return perfdata_feature_text(d, &r, &info->perf_version);
	case PERFDATA_ARCH:
		return perfdata_feature_text(d, &r, &info->arch);
	case PERFDATA_CMDLINE:
		return perfdata_feature_cmdline(d, &r);
	case PERFDATA_EVENT_DESC:
		return perfdata_feature_event_desc(d, &r);
	case PERFDATA_CLOCK_DATA:
		return perfdata_feature_clock_data(d, &r);
	case PERFDATA_NRCPUS:
		/* perf writes this order; the document has another. */
		info->cpus_available = reader_u32(&r);
		info->cpus_online = reader_u32(&r);
		break;
	case PERFDATA_SAMPLE_TIME:
		info->first_sample_ns = reader_u64(&r);
		info->last_sample_ns = reader_u64(&r);
		break;
	case PERFDATA_COMPRESSED:
		info->compressed = true;
		break;
	default: /* unknown to profcpu, or not needed */
		return !feature || feature > PERFDATA_FEATURE_LAST_KNOWN ? -ENOENT : 0;
	}
	return r.failed ? -EBADMSG : 0;
}
