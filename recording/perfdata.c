#include "recording/perfdata.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/memory_left.h"
#include "recording/perfdata_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int perfdata_open(int fd, struct perfdata **ret_data, struct parse_error *err)
{
	return perfdata_open_within(fd, memory_left(), ret_data, err);
}

int perfdata_open_within(int fd, uint64_t memory, struct perfdata **ret_data,
			 struct parse_error *err)
{
	struct perfdata *d = calloc(1, sizeof(*d));

	if (!d)
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	d->in.fd = fd;
	d->meta_left =
		memory_left_eighth(memory, PERFDATA_META_BYTES_MAX) + PERFDATA_META_BYTES_LEAST;
	int r = perfdata_read_header(d, err);

	if (r) {
		perfdata_close(d);
		return r;
	}
	*ret_data = d;
	return 0;
}

void perfdata_close(struct perfdata *d)
{
	if (!d)
		return;
	perfdata_chunk_put(&d->pool, d->held);
	perfdata_queue_free(d);
	perfdata_input_free(d);
	perfdata_pool_free(&d->pool);
	vec_free(&d->events);
	vec_free(&d->layouts);
	vec_free(&d->build_ids);
	vec_free(&d->counts);
	hashmap_free(&d->ids);
	hashmap_free(&d->count_of);
	arena_free(&d->arena);
	free(d->reread_buffer);
	free(d);
}

/* Ends reading for this reason. Queued records are returned before the error. */
static void perfdata_end(struct perfdata *d, int code)
{
	d->at_end = true;
	d->end_code = code;
}

static void perfdata_take_attr(struct perfdata *d, const struct perfdata_raw *raw)
{
	struct reader r = reader_of(raw->bytes, raw->size);
	struct perf_event_attr attr;

	reader_skip(&r, sizeof(struct perf_event_header));
	if (!d->info.pipe_mode || perfdata_read_attr(&r, reader_left(&r), &attr)) {
		d->stats.damaged++;
		return;
	}
	size_t nids = reader_left(&r) / 8;
	uint64_t *ids = perfdata_meta_alloc(d, nids * 8);

	if (ids)
		memcpy(ids, reader_bytes(&r, nids * 8), nids * 8);
	if (!ids || perfdata_add_event(d, &attr, ids, nids))
		d->stats.damaged++;
	perfdata_events_changed(d);
}

static void perfdata_take_update(struct perfdata *d, const struct perfdata_raw *raw)
{
	struct reader r = reader_of(raw->bytes, raw->size);

	reader_skip(&r, sizeof(struct perf_event_header));
	uint64_t what = reader_u64(&r), id = reader_u64(&r);
	size_t len;

	if (!r.failed && what != PERFDATA_EVENT_UPDATE_NAME)
		return;
	const char *name = reader_cstr(&r, reader_left(&r), &len);
	const uint32_t *event = hashmap_get(&d->ids, id);
	const char *copy = name && event ? perfdata_text(d, name, len) : NULL;

	if (copy)
		d->events.v[*event].name = copy;
	else
		d->stats.damaged++;
}

static void perfdata_take_feature(struct perfdata *d, const struct perfdata_raw *raw)
{
	struct reader r = reader_of(raw->bytes, raw->size);

	reader_skip(&r, sizeof(struct perf_event_header));
	uint64_t feature = reader_u64(&r);

	if (r.failed || perfdata_feature(d, feature, r.data + r.pos, reader_left(&r)))
		d->stats.unknown_features++;
}

int perfdata_skip_payload(struct perfdata *d, const struct perfdata_raw *raw)
{
	struct reader r = reader_of(raw->bytes, raw->size);
	uint64_t size;

	reader_skip(&r, sizeof(struct perf_event_header));
	size = raw->type == PERFDATA_RECORD_AUXTRACE ? reader_u64(&r)
						     : ((uint64_t)reader_u32(&r) + 7) & ~7ULL;
	if (!r.failed && !raw->inner)
		return perfdata_input_skip(d, size);
	d->stats.damaged++;
	return 0;
}

/* Handles a record that perf wrote for its readers. 0; -errno ends reading. */
static int perfdata_handle_user(struct perfdata *d, const struct perfdata_raw *raw)
{
	switch (raw->type) {
	case PERFDATA_RECORD_FINISHED_ROUND:
		d->stats.rounds++;
		return perfdata_queue_round(&d->queue);
	case PERFDATA_RECORD_HEADER_ATTR:
		perfdata_take_attr(d, raw);
		return 0;
	case PERFDATA_RECORD_EVENT_UPDATE:
		perfdata_take_update(d, raw);
		return 0;
	case PERFDATA_RECORD_HEADER_FEATURE:
		perfdata_take_feature(d, raw);
		return 0;
	case PERFDATA_RECORD_HEADER_BUILD_ID:
		d->stats.damaged += perfdata_add_build_id(d, raw->bytes, raw->size) != 0;
		return 0;
	case PERFDATA_RECORD_AUXTRACE:
	case PERFDATA_RECORD_HEADER_TRACING_DATA:
		return perfdata_skip_payload(d, raw);
	default:
		d->stats.unknown_types += raw->type > PERFDATA_RECORD_LAST_KNOWN;
		return 0;
	}
}

/*
 * Handles one record of the file. 1: return *ret_raw of *ret_event now; 0: continue; -errno ends
 * reading.
 */
static int perfdata_handle(struct perfdata *d, struct perfdata_raw *raw, uint32_t *ret_event)
{
	uint64_t time_ns;
	int64_t event;
	int r = perfdata_input_next(d, raw);

	if (r <= 0) {
		perfdata_end(d, r);
		return 0;
	}
	if (raw->type >= PERFDATA_RECORD_USER)
		return perfdata_handle_user(d, raw);
	if (!raw->type || raw->type >= PERF_RECORD_MAX) {
		d->stats.unknown_types++;
		return 0;
	}
	event = d->events.len ? perfdata_event_of(d, raw) : -1;
	if (event < 0 || !perfdata_time_of(d, raw, (uint32_t)event, &time_ns)) {
		d->stats.damaged++;
		return 0;
	}
	*ret_event = (uint32_t)event;
	if (d->ordered && time_ns)
		return perfdata_queue_add(d, raw, time_ns);
	raw->chunk->refs++;
	d->held = raw->chunk;
	return 1;
}

/* Takes the next due record from the queue; its chunk becomes d->held. */
static int perfdata_queue_pop(struct perfdata *d, struct perfdata_raw *raw)
{
	struct perfdata_entry *e = &d->queue.entries.v[d->queue.at++];
	const unsigned char *bytes = e->chunk->bytes + e->offset;
	struct perf_event_header h;

	d->held = e->chunk;
	d->queue.handed_ns = e->time_ns;
	if (!e->chunk->bytes) {
		if (!d->reread_buffer)
			d->reread_buffer = malloc(PERFDATA_RECORD_BYTES_MAX + 1);
		if (!d->reread_buffer ||
		    file_pread_all(d->in.fd, d->reread_buffer, e->size, e->file_off))
			return -EBADMSG;
		bytes = d->reread_buffer;
	}
	memcpy(&h, bytes, sizeof(h));
	*raw = (struct perfdata_raw){
		.bytes = bytes,
		.chunk = e->chunk,
		.file_off = e->file_off,
		.type = h.type,
		.misc = h.misc,
		.size = e->size,
	};
	return 0;
}

/* Finds the next record in time. 1; 0: end; -errno. */
static int perfdata_advance(struct perfdata *d, struct perfdata_raw *raw, uint32_t *ret_event)
{
	struct perfdata_queue *q = &d->queue;
	int r = 0;

	for (;;) {
		if (q->at < q->due) {
			if (!perfdata_queue_pop(d, raw)) {
				int64_t event = perfdata_event_of(d, raw);

				*ret_event = event < 0 ? 0 : (uint32_t)event;
				return 1;
			}
			d->stats.damaged++;
			perfdata_chunk_put(&d->pool, TAKE_PTR(d->held));
			continue;
		}
		perfdata_queue_compact(q);
		if (d->at_end && !q->entries.len)
			return 0;
		if (d->at_end || perfdata_queue_full(d))
			r = perfdata_queue_flush(q, !d->at_end);
		else
			r = perfdata_handle(d, raw, ret_event);
		if (r > 0)
			return 1;
		if (r < 0) { /* out of memory or unreadable; queued records are still returned */
			bool again = d->at_end;

			perfdata_end(d, r);
			if (!d->end_error.code)
				parse_fail(&d->end_error, r, "out of memory", d->in.read_off);
			if (again)
				return r;
		}
	}
}

static void perfdata_count(struct perfdata *d, const struct perfdata_record *r)
{
	d->stats.records++;
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		d->stats.samples++;
		break;
	case PERF_RECORD_LOST:
		d->stats.lost_events += r->lost.lost;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		if (!(r->misc & PERFDATA_MISC_LOST_SAMPLES_BPF))
			d->stats.lost_samples += r->lost.lost;
		break;
	case PERF_RECORD_THROTTLE:
		d->stats.throttled++;
		break;
	default:
		break;
	}
}

int perfdata_next(struct perfdata *d, struct perfdata_record *ret_record, struct parse_error *err)
{
	struct perfdata_raw raw = {0};
	uint32_t event = 0;

	for (;;) {
		if (d->group.nvalues && perfdata_group_next(d)) {
			*ret_record = d->record;
			d->record.again = true;
			break;
		}
		perfdata_chunk_put(&d->pool, TAKE_PTR(d->held));
		int r = perfdata_advance(d, &raw, &event);

		if (r < 0 || (!r && d->end_code))
			return parse_fail(err, d->end_code, d->end_error.what, d->end_error.offset);
		if (!r)
			return 0;
		if (perfdata_parse(d, &raw, event, ret_record)) {
			d->stats.damaged++;
			continue;
		}
		if (raw.type != PERF_RECORD_SAMPLE || !d->group.nvalues)
			break;
		d->record = *ret_record; /* one record for each counter that moved */
	}
	perfdata_count(d, ret_record);
	return 1;
}

const struct perfdata_event *perfdata_events(const struct perfdata *d, size_t *ret_n)
{
	*ret_n = d->events.len;
	return d->events.v;
}

const struct perfdata_info *perfdata_info(const struct perfdata *d)
{
	return &d->info;
}

const struct perfdata_stats *perfdata_stats(const struct perfdata *d)
{
	return &d->stats;
}
