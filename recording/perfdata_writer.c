#include "recording/perfdata_writer_impl.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRITER_QUEUE 512 /* chunks that one system call writes */
#define WRITER_EVENTS_MAX 4096

struct writer_ids {
	uint64_t at; /* file offset */
	size_t n, max;
};

struct perfdata_writer {
	int fd;
	struct writer_ids *ids; /* ids of each event */
	size_t nevents;
	int error; /* the first failed write; stays */
	struct perfdata_file_header header;
	struct perfdata_features features;
	uint64_t at; /* file offset of the next byte */
	struct iovec queue[WRITER_QUEUE];
	size_t queued;
	uint64_t queued_bytes;
	bool round_open; /* a record was written since the last FINISHED_ROUND */
};

static const struct perf_event_header finished_round = {
	.type = PERFDATA_RECORD_FINISHED_ROUND,
	.size = sizeof(struct perf_event_header),
};

static const struct perf_event_header last_round = {
	.type = PERFDATA_RECORD_FINISHED_ROUND,
	.misc = PERFDATA_MISC_LAST_ROUND,
	.size = sizeof(struct perf_event_header),
};

/* Writes attrs with the places of their ids, then the ids. */
static void put_attrs(struct outbuf *out, const struct perfdata_writer_event *events, size_t n,
		      struct writer_ids *places)
{
	static const uint64_t none;
	uint64_t ids_at = sizeof(struct perfdata_file_header) +
			  n * (sizeof(events[0].attr) + sizeof(struct perfdata_section));

	for (size_t i = 0; i < n; i++) {
		struct perfdata_section ids = {ids_at, events[i].nids * sizeof(uint64_t)};

		outbuf_put(out, &events[i].attr, sizeof(events[i].attr));
		outbuf_put(out, &ids, sizeof(ids));
		places[i] = (struct writer_ids){ids_at, events[i].nids,
						events[i].nids + events[i].room};
		ids_at += places[i].max * sizeof(uint64_t);
	}
	for (size_t i = 0; i < n; i++) {
		outbuf_put(out, events[i].ids, events[i].nids * sizeof(uint64_t));
		for (size_t k = 0; k < events[i].room; k++)
			outbuf_put(out, &none, sizeof(none));
	}
}

static void put_preface(struct outbuf *out, const struct perfdata_features *f)
{
	struct perfdata_preface preface = {.magic = PERFDATA_PREFACE_MAGIC};

	memcpy(preface.bits, f->bits, sizeof(preface.bits));
	for (unsigned i = 0; i <= PERFDATA_FEATURE_LAST_KNOWN; i++) {
		if (!perfdata_feature_is_set(f, i))
			continue;
		outbuf_put(out, &f->sections[i], sizeof(f->sections[i]));
		preface.count++;
	}
	outbuf_put(out, &preface, sizeof(preface));
}

static int write_beginning(struct perfdata_writer *w, const struct perfdata_writer_event *events,
			   size_t nevents, const struct perfdata_writer_info *info)
{
	struct perfdata_file_header *h = &w->header;
	struct outbuf out = outbuf_to(-1);
	int r;

	*h = (struct perfdata_file_header){
		.magic = PERFDATA_MAGIC,
		.size = sizeof(*h),
		.attr_size = sizeof(events[0].attr) + sizeof(struct perfdata_section),
		.attrs = {.offset = sizeof(*h)},
	};
	h->attrs.size = nevents * h->attr_size;
	outbuf_put(&out, h, sizeof(*h));
	put_attrs(&out, events, nevents, w->ids);
	perfdata_write_features(&out, 0, events, nevents, info, &w->features);
	put_preface(&out, &w->features);
	r = out.error;
	if (!r) {
		h->data.offset = w->at = out.len;
		memcpy(out.data, h, sizeof(*h));
		r = file_write_all(w->fd, out.data, out.len);
	}
	(void)outbuf_close(&out);
	return r;
}

int perfdata_writer_new(int fd, const struct perfdata_writer_event *events, size_t nevents,
			const struct perfdata_writer_info *info,
			struct perfdata_writer **ret_writer)
{
	if (!nevents || nevents > WRITER_EVENTS_MAX)
		return -E2BIG;
	struct perfdata_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->nevents = nevents;
	w->ids = calloc(nevents, sizeof(*w->ids));
	int r = w->ids ? write_beginning(w, events, nevents, info) : -ENOMEM;

	if (r)
		perfdata_writer_free(w);
	else
		*ret_writer = w;
	return r;
}

void perfdata_writer_free(struct perfdata_writer *w)
{
	if (w)
		free(w->ids);
	free(w);
}

/* Writes the id before its count, so that a crash in between changes nothing. */
int perfdata_writer_add_id(struct perfdata_writer *w, size_t event, uint64_t id)
{
	struct writer_ids *ids = &w->ids[event];
	uint64_t size = (ids->n + 1) * sizeof(id);
	uint64_t size_at =
		w->header.attrs.offset + (event + 1) * w->header.attr_size - sizeof(size);

	if (ids->n == ids->max)
		return w->nevents > 1 ? -E2BIG : 0;
	if (!w->error)
		w->error = file_pwrite_all(w->fd, &id, sizeof(id), ids->at + size - sizeof(id));
	if (!w->error)
		w->error = file_pwrite_all(w->fd, &size, sizeof(size), size_at);
	ids->n++;
	return w->error;
}

/* Removes `done` bytes from the front of the queue. Returns the first remaining chunk. */
static struct iovec *queue_advance(struct perfdata_writer *w, struct iovec *first, size_t done)
{
	struct iovec *end = w->queue + w->queued;

	for (; first < end && done >= first->iov_len; first++)
		done -= first->iov_len;
	if (first < end) {
		first->iov_base = (char *)first->iov_base + done;
		first->iov_len -= done;
	}
	return first;
}

int perfdata_writer_flush(struct perfdata_writer *w)
{
	struct iovec *first = w->queue;

	while (!w->error && first < w->queue + w->queued) {
		ssize_t n = writev(w->fd, first, (int)(w->queue + w->queued - first));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			w->error = n ? -errno : -EIO;
			break;
		}
		w->at += (uint64_t)n;
		first = queue_advance(w, first, (size_t)n);
	}
	w->queued = 0;
	w->queued_bytes = 0;
	return w->error;
}

static int enqueue(struct perfdata_writer *w, const void *data, size_t len)
{
	if (w->queued == WRITER_QUEUE && perfdata_writer_flush(w))
		return w->error;
	w->queued_bytes += len;
	/* iovec lacks const; the bytes are only read. */
	w->queue[w->queued++] = (struct iovec){(void *)(uintptr_t)data, len};
	return w->error;
}

int perfdata_writer_records(struct perfdata_writer *w, const void *data, size_t len)
{
	struct iovec *last = w->queued ? &w->queue[w->queued - 1] : NULL;

	w->round_open = true;
	if (last && (const char *)last->iov_base + last->iov_len == (const char *)data) {
		last->iov_len += len;
		w->queued_bytes += len;
		return w->error;
	}
	return enqueue(w, data, len);
}

int perfdata_writer_round(struct perfdata_writer *w)
{
	if (!w->round_open)
		return w->error;
	w->round_open = false;
	int r = enqueue(w, &finished_round, sizeof(finished_round));

	return r ? r : perfdata_writer_flush(w);
}

uint64_t perfdata_writer_next(const struct perfdata_writer *w)
{
	return w->at + w->queued_bytes;
}

uint64_t perfdata_writer_bytes(const struct perfdata_writer *w)
{
	return w->at - w->header.data.offset;
}

int perfdata_write_end(int fd, struct perfdata_file_header *header, struct perfdata_features *f,
		       uint64_t data_end, uint64_t first_sample_ns, uint64_t last_sample_ns)
{
	uint64_t times[2] = {first_sample_ns, last_sample_ns}, at = data_end;
	struct outbuf out = outbuf_to(-1);
	size_t count = 0;
	int r;

	/*
	 * The mark precedes everything that is not a record. So each file has a record, and size 0
	 * means that the recorder was killed.
	 */
	outbuf_put(&out, &last_round, sizeof(last_round));
	data_end += sizeof(last_round);
	perfdata_feature_set(f, PERFDATA_SAMPLE_TIME, 0, sizeof(times));
	/* Empty. So setting build ids later changes only one section of the table. */
	perfdata_feature_set(f, PERFDATA_BUILD_ID, 0, 0);
	for (unsigned i = 0; i <= PERFDATA_FEATURE_LAST_KNOWN; i++)
		count += perfdata_feature_is_set(f, i);
	f->sections[PERFDATA_SAMPLE_TIME].offset =
		data_end + count * sizeof(struct perfdata_section);
	f->sections[PERFDATA_BUILD_ID].offset =
		f->sections[PERFDATA_SAMPLE_TIME].offset + sizeof(times);
	for (unsigned i = 0; i <= PERFDATA_FEATURE_LAST_KNOWN; i++)
		if (perfdata_feature_is_set(f, i))
			outbuf_put(&out, &f->sections[i], sizeof(f->sections[i]));
	outbuf_put(&out, times, sizeof(times));
	r = out.error;
	if (!r)
		r = file_pwrite_all(fd, out.data, out.len, at);
	if (!r && ftruncate(fd, (off_t)(at + out.len)))
		r = -errno;
	(void)outbuf_close(&out);
	/* The header must not be on disk before the data that it describes. */
	if (!r)
		r = file_sync(fd);
	if (r)
		return r;
	header->data.size = data_end - header->data.offset;
	memcpy(header->features, f->bits, sizeof(header->features));
	r = file_pwrite_all(fd, header, sizeof(*header), 0);
	return r ? r : file_sync(fd);
}

int perfdata_writer_finish(struct perfdata_writer *w, uint64_t first_sample_ns,
			   uint64_t last_sample_ns)
{
	int error = perfdata_writer_flush(w), r;

	if (error)
		r = perfdata_repair(w->fd, NULL, NULL); /* finds the last whole record on disk */
	else
		r = perfdata_write_end(w->fd, &w->header, &w->features, w->at, first_sample_ns,
				       last_sample_ns);
	return error ? error : r;
}
