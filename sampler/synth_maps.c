#include "sampler/synth_maps.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "container/ask.h"
#include "container/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#define MAPS_TEXT_MAX ((size_t)256 << 20) /* of one process; more than a million mappings */
#define MAPS_READ ((size_t)1 << 20)       /* in one question */
#define MAPS_BATCH 32                     /* more than most processes have */
#define MAPS_PATH 256

/* As the kernel writes it (include/uapi/linux/perf_event.h). */
struct body_mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct { /* with PERF_RECORD_MISC_MMAP_BUILD_ID */
			uint8_t build_id_size, reserved_1;
			uint16_t reserved_2;
			uint8_t build_id[PROCMAP_BUILD_ID_MAX];
		};
	};
	uint32_t prot, flags;
};
_Static_assert(sizeof(struct body_mmap2) == 64, "record layout");

/* -E2BIG: over the limit. */
static int put_map(struct synth_maps *maps, struct synth_buf *b, pid_t pid,
		   const struct proc_map *m, const uint8_t *build_id, uint8_t build_id_len)
{
	uint16_t misc = PERF_RECORD_MISC_USER;
	bool named = m->path_len;
	struct body_mmap2 body = {
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.addr = m->start,
		.len = m->end - m->start,
		.pgoff = m->pgoff,
		.prot = m->prot,
		.flags = m->flags,
	};

	maps->bytes += sizeof(body) + m->path_len;
	if (maps->bytes > SYNTH_MAPS_BYTES_MAX)
		return -E2BIG;
	if (build_id_len) {
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		body.build_id_size = build_id_len;
		memcpy(body.build_id, build_id, build_id_len);
	} else {
		body.maj = m->maj;
		body.min = m->min;
		body.ino = m->ino;
	}
	return synth_buf_put(b, PERF_RECORD_MMAP2, misc, &body, sizeof(body),
			     named ? m->path : "//anon", named ? m->path_len : 6);
}

/* Read by another thread, because the kernel may not answer (ask.h). */
struct maps_question {
	char path[MAPS_PATH];
	int fd;                  /* -1: not open yet */
	uint64_t addr;           /* where the next batch begins */
	struct procmap *batch;   /* MAPS_BATCH */
	size_t n;                /* of the batch */
	bool wanted[MAPS_BATCH]; /* build ids */
	char *v;                 /* the text */
	size_t len, cap;
};

static void drop_question(void *question)
{
	struct maps_question *q = question;

	cleanup_close(&q->fd);
	free(q->batch);
	free(q->v);
}

static int open_maps(struct maps_question *q)
{
	if (q->fd < 0)
		q->fd = open(q->path, O_RDONLY | O_CLOEXEC);
	return q->fd < 0 ? -errno : 0;
}

static int query_batch(void *question)
{
	struct maps_question *q = question;
	int r = open_maps(q);

	for (q->n = 0; !r && q->n < MAPS_BATCH; q->n++) {
		struct procmap *m = &q->batch[q->n];

		r = procmap_next(q->fd, q->addr, m);
		if (r <= 0 || m->map.end <= q->addr)
			return r < 0 ? r : 0;
		q->addr = m->map.end;
		r = 0;
	}
	return r;
}

static int query_build_ids(void *question)
{
	struct maps_question *q = question;

	for (size_t i = 0; i < q->n; i++)
		if (q->wanted[i])
			procmap_build_id(q->fd, &q->batch[i]);
	return 0;
}

/* Reads MAPS_READ more bytes of the text, for which there is memory. 1: there may be more; 0;
 * -errno. */
static int read_text(void *question)
{
	struct maps_question *q = question;
	int r = open_maps(q);

	if (r)
		return r;
	size_t end = q->len + MAPS_READ - 1;
	ssize_t n = 1;

	while (n && q->len < end) {
		n = read(q->fd, q->v + q->len, end - q->len);
		if (n < 0 && errno != EINTR)
			return -errno;
		q->len += n > 0 ? (size_t)n : 0;
	}
	q->v[q->len] = 0;
	return n > 0;
}

/* Returns fn's result. If there is no answer, q is empty. */
static int ask_maps(pid_t pid, int (*fn)(void *question), struct maps_question *q)
{
	int r = ask(pid, fn, drop_question, q, sizeof(*q));

	if (r == -ETIME)
		*q = (struct maps_question){.fd = -1};
	return r;
}

/* Wants the build ids of files on file systems that answer. Returns how many, or -ENOMEM. */
static int want_build_ids(struct synth_maps *maps, struct maps_question *q, pid_t pid)
{
	bool permitted = false;
	dev_t asked = 0;
	int n = 0;

	for (size_t i = 0; i < q->n; i++) {
		const struct proc_map *m = &q->batch[i].map;
		dev_t dev = makedev(m->maj, m->min);
		int r = m->ino && !maps->opener ? opener_new(&maps->opener) : 0;

		if (r)
			return r;
		/* Files of a process are mostly on one device. One answer serves a whole batch. */
		if (m->ino && dev != asked) {
			permitted = opener_may_read_device(maps->opener, pid, dev);
			asked = dev;
		}
		q->wanted[i] = m->ino && permitted;
		n += q->wanted[i];
	}
	return n;
}

/*
 * 0, also if the process ended or is not ours; -ENOTTY: the kernel lacks the ioctl; -ENOMEM; errors
 * of put_map.
 */
static int put_queried(struct synth_maps *maps, struct synth_buf *b, pid_t pid,
		       struct maps_question *q)
{
	int r;

	do {
		r = ask_maps(pid, query_batch, q);
		if (r)
			return r == -ENOTTY ? r : 0;
		r = want_build_ids(maps, q, pid);
		if (r > 0)
			r = ask_maps(pid, query_build_ids, q);
		for (size_t i = 0; i < q->n && !r; i++)
			r = put_map(maps, b, pid, &q->batch[i].map, q->batch[i].build_id,
				    q->batch[i].build_id_len);
	} while (!r && q->n == MAPS_BATCH);
	return r;
}

static int put_text(struct synth_maps *maps, struct synth_buf *b, pid_t pid,
		    struct maps_question *q)
{
	struct proc_map m;
	int r = 1;

	while (r > 0 && q->len < MAPS_TEXT_MAX) {
		if (vec_reserve(q, MAPS_READ))
			return -ENOMEM;
		r = ask_maps(pid, read_text, q);
	}
	if (r < 0)
		return 0;
	char *cursor = q->v;

	r = 0;
	while (!r && proc_map_next(&cursor, &m))
		if (m.prot & PROT_EXEC)
			r = put_map(maps, b, pid, &m, NULL, 0);
	return r;
}

int synth_maps_put(struct synth_maps *maps, struct synth_buf *b, pid_t pid)
{
	struct maps_question q = {.fd = -1, .batch = TAKE_PTR(maps->batch)};

	if (!q.batch)
		q.batch = calloc(MAPS_BATCH, sizeof(*q.batch));
	int r = q.batch ? -ENOTTY : -ENOMEM;

	snprintf(q.path, sizeof(q.path), "%s/%d/task/%d/maps", b->from.proc, pid, pid);
	maps->bytes = 0;
	if (q.batch && !maps->no_query)
		r = put_queried(maps, b, pid, &q);
	if (r == -ENOTTY) {
		maps->no_query = true;
		r = put_text(maps, b, pid, &q);
	}
	maps->batch = TAKE_PTR(q.batch);
	drop_question(&q);
	if (r != -E2BIG)
		return r;
	if (b->s)
		b->s->stats.cut_maps++;
	return 0;
}

void synth_maps_free(struct synth_maps *maps)
{
	if (maps) {
		opener_free(maps->opener);
		free(maps->batch);
	}
	free(maps);
}
