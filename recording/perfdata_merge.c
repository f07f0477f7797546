/* Merges the files of a directory of `perf record --threads` into one perf.data, by time. */
#include "recording/perfdata_impl.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outbuf.h"
#include "container/memory_left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Each file of the directory has the records of some rings, without rounds. A file of one ring is
 * ordered by time. In a file of several rings, a record can be older than the records before it.
 * The distance between rounds covers that.
 */
#define MERGE_ROUND_BYTES ((uint64_t)8 << 20)
#define MERGE_FILES_MAX 4096
/* Compressed files grow. Above the first size, they may grow at most to this multiple. */
#define MERGE_BYTES_FREE ((uint64_t)1 << 30)
#define MERGE_RATIO_MAX 1000
/* All files may take this many eighths of the memory that is left. */
#define MERGE_MEMORY_EIGHTHS 7
#define MERGE_STREAM_BYTES ((uint64_t)1 << 20) /* of a compressed file, besides its window */
#define MERGE_WINDOW_LOG_MIN 10                /* zstd's limits; perf's windows have at least 19 */
#define MERGE_WINDOW_LOG_MAX 27

/* A file that is being read. Only the parts of `data` for input are in use, except in `data`. */
struct merge_stream {
	struct perfdata *data;
	struct perfdata_raw raw; /* its next record */
	uint64_t time_ns;        /* of that record, or of an earlier one if that has none */
	uint32_t index;          /* 0: data; otherwise 1 + the number in the name */
};

struct merge {
	int dir_fd;
	struct perfdata *header; /* of the file `data`, which names the events */
	struct perfdata_file_header file_header;
	VEC(struct merge_stream *) heap; /* the earliest record is first */
	struct outbuf out;
	uint64_t out_at, out_max, in_bytes; /* bytes written, allowed and read */
	uint64_t round_at;                  /* value of out_at at the last round */
	struct perfdata_merged *result;
	struct parse_error *err;
};

static void merge_put(struct merge *m, const void *bytes, size_t len)
{
	outbuf_put(&m->out, bytes, len);
	m->out_at += len;
}

static void merge_note_damage(struct merge *m, uint32_t index)
{
	if (m->result->damaged++)
		return;
	if (index)
		snprintf(m->result->first_damaged, sizeof(m->result->first_damaged), "data.%u",
			 (unsigned int)index - 1);
	else
		snprintf(m->result->first_damaged, sizeof(m->result->first_damaged), "data");
}

static void merge_stream_free(const struct merge *m, struct merge_stream *s)
{
	if (s && s->data != m->header) {
		close(s->data->in.fd);
		perfdata_close(s->data);
	}
	free(s);
}

/*
 * Reads the next record that the merged file gets. Rounds hold for one file only, and payloads of
 * AUXTRACE are not needed. 1; 0: end; -errno.
 */
static int merge_read(struct merge_stream *s)
{
	for (;;) {
		int r = perfdata_input_next(s->data, &s->raw);

		if (r <= 0)
			return r;
		if (s->raw.type == PERFDATA_RECORD_AUXTRACE ||
		    s->raw.type == PERFDATA_RECORD_HEADER_TRACING_DATA)
			r = perfdata_skip_payload(s->data, &s->raw);
		else if (s->raw.type != PERFDATA_RECORD_FINISHED_ROUND)
			return 1;
		if (r < 0)
			return r;
	}
}

/* Moves to the next record of a file. 1; 0: no more, damage is noted; -errno. */
static int merge_next(struct merge *m, struct merge_stream *s)
{
	uint64_t time_ns = 0;
	int r = merge_read(s);

	/* No perf makes larger windows than the largest limit, so those are damage of this file. */
	if (s->data->in.unzip.too_large && s->data->in.unzip.window_log < MERGE_WINDOW_LOG_MAX)
		return parse_fail(m->err, -E2BIG,
				  "decompression needs more memory than is left; raise the limit "
				  "of memory, or read it on another machine",
				  s->data->in.unzip.block_off);
	if (r <= 0) {
		if (r && r != -EBADMSG)
			return parse_fail(m->err, r, s->data->end_error.what,
					  s->data->end_error.offset);
		if (r || s->data->stats.truncated_at || s->data->stats.damaged)
			merge_note_damage(m, s->index);
		return 0;
	}
	if (s->raw.type < PERFDATA_RECORD_USER && m->header->events.len) {
		int64_t event = perfdata_event_of(m->header, &s->raw);

		if (event >= 0 && perfdata_time_of(m->header, &s->raw, (uint32_t)event, &time_ns) &&
		    time_ns)
			s->time_ns = time_ns;
	}
	return 1;
}

static bool merge_is_before(const struct merge_stream *a, const struct merge_stream *b)
{
	return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->index < b->index);
}

/* Moves the stream at `at` down the heap to its place. */
static void merge_sift(struct merge *m, size_t at)
{
	struct merge_stream **v = m->heap.v;

	for (;;) {
		size_t first = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->heap.len; child++)
			if (merge_is_before(v[child], v[first]))
				first = child;
		if (first == at)
			return;
		struct merge_stream *s = v[at];

		v[at] = v[first];
		v[first] = s;
		at = first;
	}
}

/* Adds a stream for `data`, which it takes unless that is the header. */
static int merge_add(struct merge *m, struct perfdata *data, uint32_t index)
{
	struct merge_stream *s = calloc(1, sizeof(*s));
	int r = s && !vec_reserve(&m->heap, 1) ? 0 : -ENOMEM;

	if (r) {
		free(s);
		return parse_fail(m->err, r, "out of memory", 0);
	}
	*s = (struct merge_stream){.data = data, .index = index};
	m->heap.v[m->heap.len++] = s;
	m->result->files++;
	m->in_bytes += data->in.stop_off - data->in.read_off;
	return 0;
}

/* Opens data.N, for N = index - 1. A missing file is damage. */
static int merge_open(struct merge *m, uint32_t index)
{
	AUTO_CLOSE int fd = -1;
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), "data.%u", (unsigned int)index - 1);
	int r = file_open_regular(m->dir_fd, name, &fd);

	if (r == -ENOENT || r == -EINVAL) {
		merge_note_damage(m, index);
		return 0;
	}
	if (!r && fstat(fd, &st))
		r = -errno;
	if (r)
		return parse_fail(m->err, r, "one of its files could not be opened", 0);
	struct perfdata *d = calloc(1, sizeof(*d));

	if (!d)
		return parse_fail(m->err, -ENOMEM, "out of memory", 0);
	d->pool.chunk_bytes = PERFDATA_CHUNK_LEAST;
	d->pool.held_max = PERFDATA_HELD_BYTES_MAX;
	d->queue.max = PERFDATA_QUEUE_MAX;
	d->in.seekable = true;
	d->in.end_off = UINT64_MAX;
	d->in.stop_off = (uint64_t)st.st_size;
	d->in.fd = fd;
	r = merge_add(m, d, index);
	if (r)
		perfdata_close(d);
	else
		TAKE_FD(fd);
	return r;
}

/* Finds how many files data.N the directory has, by the largest N. 0 or -errno. */
static int merge_count_files(struct merge *m, uint32_t *ret_n)
{
	int fd = openat(m->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	uint32_t n = 0;

	if (!dir) {
		int r = -errno;

		cleanup_close(&fd);
		return parse_fail(m->err, r, "the directory could not be read", 0);
	}
	while ((e = readdir(dir))) {
		unsigned int number;
		int len = 0;

		if (sscanf(e->d_name, "data.%9u%n", &number, &len) == 1 && !e->d_name[len] &&
		    number >= n)
			n = number + 1;
	}
	closedir(dir);
	if (n > MERGE_FILES_MAX)
		return parse_fail(m->err, -E2BIG, "it has more than 4096 files", 0);
	*ret_n = n;
	return 0;
}

/* Limits the memory for zstd: with many streams each gets a smaller window. */
static void merge_limit_windows(struct merge *m)
{
	uint64_t each = memory_left() / 8 * MERGE_MEMORY_EIGHTHS / m->heap.len;
	int log = MERGE_WINDOW_LOG_MAX;

	while (log > MERGE_WINDOW_LOG_MIN && (UINT64_C(1) << log) + MERGE_STREAM_BYTES > each)
		log--;
	for (size_t i = 0; i < m->heap.len; i++)
		m->heap.v[i]->data->in.unzip.window_log = log;
}

/* Opens all files and reads their first records. */
static int merge_begin(struct merge *m)
{
	uint32_t n = 0;
	size_t kept = 0;
	int r = merge_count_files(m, &n);

	if (!r)
		r = merge_add(m, m->header, 0);
	for (uint32_t i = 1; i <= n && !r; i++)
		r = merge_open(m, i);
	if (r)
		return r;
	merge_limit_windows(m);
	for (size_t i = 0; i < m->heap.len; i++) {
		int more = r ? 0 : merge_next(m, m->heap.v[i]);

		r = more < 0 ? more : r;
		if (more > 0)
			m->heap.v[kept++] = m->heap.v[i];
		else
			merge_stream_free(m, m->heap.v[i]);
	}
	m->heap.len = kept;
	for (size_t i = kept; i--;)
		merge_sift(m, i);
	m->out_max = m->in_bytes * MERGE_RATIO_MAX;
	if (m->out_max < MERGE_BYTES_FREE)
		m->out_max = MERGE_BYTES_FREE;
	return r;
}

/* Writes all records in the order of time, with rounds. */
static int merge_records(struct merge *m)
{
	static const struct perf_event_header round = {.type = PERFDATA_RECORD_FINISHED_ROUND,
						       .size = sizeof(round)};

	while (m->heap.len) {
		struct merge_stream *s = m->heap.v[0];

		merge_put(m, s->raw.bytes, s->raw.size);
		if (m->out_at - m->round_at >= MERGE_ROUND_BYTES) {
			merge_put(m, &round, sizeof(round));
			m->round_at = m->out_at;
		}
		if (m->out.error)
			return m->out.error;
		if (m->out_at > m->out_max)
			return parse_fail(m->err, -E2BIG,
					  "its compressed files grow to over 1000 times their size",
					  0);
		int r = merge_next(m, s);

		if (r < 0)
			return r;
		if (!r) {
			m->heap.v[0] = m->heap.v[--m->heap.len];
			merge_stream_free(m, s);
		}
		merge_sift(m, 0);
	}
	return 0;
}

/* Copies len bytes at off from the file `data`. */
static int merge_copy(struct merge *m, uint64_t off, uint64_t len)
{
	char bytes[4096];

	while (len) {
		size_t n = len < sizeof(bytes) ? (size_t)len : sizeof(bytes);
		int r = file_pread_all(m->header->in.fd, bytes, n, off);

		if (r)
			return r;
		merge_put(m, bytes, n);
		off += n;
		len -= n;
	}
	return 0;
}

/* Whether a feature of the old file also holds for the merged one. */
static bool merge_keeps_feature(const struct merge *m, unsigned int bit)
{
	return m->file_header.features[bit / 64] >> bit % 64 & 1 && bit != PERFDATA_DIR_FORMAT &&
	       bit != PERFDATA_COMPRESSED;
}

/* The old place of a feature's content. A content that is not in the file becomes empty. */
static struct perfdata_section merge_section(const struct merge *m, unsigned int bit, uint64_t size,
					     uint64_t left)
{
	const struct perfdata_file_header *h = &m->file_header;
	struct perfdata_section s = {0};
	uint64_t before = 0;

	for (unsigned int i = 0; i < bit; i++)
		before += h->features[i / 64] >> i % 64 & 1;
	if (file_pread_all(m->header->in.fd, &s, sizeof(s),
			   h->data.offset + h->data.size + before * sizeof(s)) ||
	    s.offset > size || s.size > size - s.offset || s.size > left)
		s = (struct perfdata_section){0};
	return s;
}

/* Writes the table of features and their contents. Sets the bits in *h. 0 or -errno. */
static int merge_features(struct merge *m, struct perfdata_file_header *h)
{
	struct perfdata_section from[PERFDATA_FEATURES_MAX], to[PERFDATA_FEATURES_MAX];
	uint64_t left = PERFDATA_FEATURE_BYTES_MAX, at = m->out_at;
	struct stat st;
	size_t n = 0;
	int r = fstat(m->header->in.fd, &st) ? -errno : 0;

	memset(h->features, 0, sizeof(h->features));
	for (unsigned int bit = 0; bit < PERFDATA_FEATURES_MAX && !r; bit++) {
		if (!merge_keeps_feature(m, bit))
			continue;
		from[n] = merge_section(m, bit, (uint64_t)st.st_size, left);
		left -= from[n++].size;
		h->features[bit / 64] |= 1ULL << bit % 64;
	}
	at += n * sizeof(to[0]);
	for (size_t i = 0; i < n; i++) {
		to[i] = (struct perfdata_section){at, from[i].size};
		at += from[i].size;
	}
	merge_put(m, to, n * sizeof(to[0]));
	for (size_t i = 0; i < n && !r; i++)
		r = merge_copy(m, from[i].offset, from[i].size);
	return r;
}

/*
 * Writes everything, the header last. A file whose recorder did not finish has neither features nor
 * a size of the data. The merged file then lacks both, too.
 */
static int merge_write(struct merge *m, int out_fd)
{
	struct perfdata_file_header h = m->file_header;
	int r = merge_copy(m, 0, h.data.offset);

	if (r)
		return parse_fail(m->err, r == -ENODATA ? -EBADMSG : r,
				  "its file data could not be read", h.data.offset);
	r = merge_begin(m);
	if (!r)
		r = merge_records(m);
	if (!r && h.data.size) {
		h.data.size = m->out_at - h.data.offset;
		r = merge_features(m, &h);
	}
	if (!r)
		r = outbuf_flush(&m->out);
	if (!r)
		r = file_pwrite_all(out_fd, &h, h.size, 0);
	if (r && !(m->err && m->err->code))
		parse_fail(m->err, r, "the merged file could not be written", m->out_at);
	return r;
}

/* Reads the header of the file `data` again, for its places. */
static int merge_read_header(struct merge *m)
{
	struct perfdata_file_header *h = &m->file_header;
	int fd = m->header->in.fd;
	int r = m->header->info.pipe_mode
			? -EBADMSG
			: file_pread_all(fd, h, offsetof(struct perfdata_file_header, features), 0);

	if (!r && h->size == sizeof(*h))
		r = file_pread_all(fd, h, sizeof(*h), 0);
	if (!r && (h->size > sizeof(*h) || h->data.offset > PERFDATA_META_BYTES_MAX))
		r = -EBADMSG;
	return r ? parse_fail(m->err, r, "its file data has a wrong header", 0) : 0;
}

int perfdata_merge(int dir_fd, int out_fd, struct perfdata_merged *ret_merged,
		   struct parse_error *err)
{
	AUTO_CLOSE int fd = -1;
	struct perfdata_merged merged = {0};
	struct merge m = {
		.dir_fd = dir_fd, .out = outbuf_to(out_fd), .result = &merged, .err = err};
	int r = file_open_regular(dir_fd, "data", &fd);

	if (r)
		return parse_fail(err, r, "its file data could not be opened", 0);
	r = perfdata_open(fd, &m.header, err);
	if (r)
		return r;
	r = merge_read_header(&m);
	if (!r)
		r = merge_write(&m, out_fd);
	for (size_t i = 0; i < m.heap.len; i++)
		merge_stream_free(&m, m.heap.v[i]);
	vec_free(&m.heap);
	(void)outbuf_close(&m.out);
	perfdata_close(m.header);
	if (!r)
		*ret_merged = merged;
	return r;
}
