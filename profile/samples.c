#include "profile/samples.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

_Static_assert(sizeof(struct samples_row) == 16, "16 bytes a sample are promised");

#define SAMPLES_THREAD_BITS 18
#define SAMPLES_EVENT_BITS 4
#define SAMPLES_CPU_BITS 10
#define SAMPLES_WIDE UINT32_MAX
#define SAMPLES_READ_ROWS ((size_t)16 << 10)

void samples_init(struct samples *s)
{
	*s = (struct samples){.fd = -1, .rows_max = SAMPLES_IN_MEMORY_MAX};
}

void samples_free(struct samples *s)
{
	vec_free(&s->rows);
	vec_free(&s->wide);
	if (s->fd >= 0)
		close(s->fd);
	samples_init(s);
}

/* Opens an unlinked file in TMPDIR. Returns the descriptor or -errno. */
static int samples_temp_file(void)
{
	const char *dir = getenv("TMPDIR");
	AUTO_FREE char *path = NULL;

	if (!dir || !*dir)
		dir = "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	path = file_join(dir, "profcpu-samples-XXXXXX");
	if (!path)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int samples_spill(struct samples *s)
{
	if (s->fd < 0) {
		int fd = samples_temp_file();

		if (fd < 0)
			return fd;
		s->fd = fd;
	}
	int r = file_pwrite_all(s->fd, s->rows.v, s->rows.len * sizeof(*s->rows.v),
				s->in_file * sizeof(*s->rows.v));

	if (r)
		return r;
	s->in_file += s->rows.len;
	s->rows.len = 0;
	return 0;
}

/* Packs the sample. False: it does not fit. */
static bool samples_pack(const struct samples *s, const struct profile_sample *in,
			 struct samples_row *out)
{
	int64_t delta = (int64_t)(in->time_ns - s->last_time_ns);
	uint32_t cpu = (uint32_t)in->cpu + 1;

	if (delta != (int32_t)delta || in->weight > UINT32_MAX ||
	    in->thread >= 1u << SAMPLES_THREAD_BITS || in->event >= 1u << SAMPLES_EVENT_BITS ||
	    cpu >= 1u << SAMPLES_CPU_BITS)
		return false;
	*out = (struct samples_row){
		.time_delta_ns = (int32_t)delta,
		.stack = in->stack,
		.weight = (uint32_t)in->weight,
		.tag = in->thread | in->event << SAMPLES_THREAD_BITS |
		       cpu << (SAMPLES_THREAD_BITS + SAMPLES_EVENT_BITS),
	};
	return out->tag != SAMPLES_WIDE;
}

int samples_add(struct samples *s, const struct profile_sample *sample)
{
	struct samples_row row;
	int r = s->rows.len >= s->rows_max ? samples_spill(s) : 0;

	if (r)
		return r;
	if (vec_reserve(&s->rows, 1))
		return -ENOMEM;
	if (!samples_pack(s, sample, &row)) {
		if (s->wide.len >= UINT32_MAX)
			return -E2BIG;
		if (vec_push(&s->wide, *sample))
			return -ENOMEM;
		row = (struct samples_row){.stack = (uint32_t)s->wide.len - 1, .tag = SAMPLES_WIDE};
	}
	s->rows.v[s->rows.len++] = row;
	s->last_time_ns = sample->time_ns;
	s->n++;
	return 0;
}

static struct profile_sample samples_unpack(const struct samples *s, const struct samples_row *row,
					    uint64_t last_time_ns)
{
	if (row->tag == SAMPLES_WIDE)
		return s->wide.v[row->stack];
	return (struct profile_sample){
		.time_ns = last_time_ns + (uint64_t)(int64_t)row->time_delta_ns,
		.weight = row->weight,
		.thread = row->tag & ((1u << SAMPLES_THREAD_BITS) - 1),
		.event = row->tag >> SAMPLES_THREAD_BITS & ((1u << SAMPLES_EVENT_BITS) - 1),
		.cpu = (int32_t)(row->tag >> (SAMPLES_THREAD_BITS + SAMPLES_EVENT_BITS)) - 1,
		.stack = row->stack,
	};
}

int samples_each(struct samples *s, int (*fn)(void *ctx, const struct profile_sample *sample),
		 void *ctx)
{
	AUTO_FREE struct samples_row *buf = NULL;
	uint64_t time_ns = 0;

	if (s->in_file && !(buf = malloc(SAMPLES_READ_ROWS * sizeof(*buf))))
		return -ENOMEM;
	for (uint64_t at = 0; at < s->n;) {
		const struct samples_row *rows = s->rows.v;
		size_t n = s->rows.len;

		if (at < s->in_file) {
			n = s->in_file - at < SAMPLES_READ_ROWS ? s->in_file - at
								: SAMPLES_READ_ROWS;
			int r = file_pread_all(s->fd, buf, n * sizeof(*buf), at * sizeof(*buf));

			if (r)
				return r;
			rows = buf;
		}
		for (size_t i = 0; i < n; i++) {
			struct profile_sample sample = samples_unpack(s, &rows[i], time_ns);
			int r = fn(ctx, &sample);

			if (r)
				return r;
			time_ns = sample.time_ns;
		}
		at += n;
	}
	return 0;
}
