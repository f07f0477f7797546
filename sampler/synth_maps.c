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
		   const struct proc_map *m, const struct procmap_build_id *id)
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
	if (id && id->len) {
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		body.build_id_size = id->len;
		memcpy(body.build_id, id->bytes, id->len);
	} else {
		body.maj = m->maj;
		body.min = m->min;
		body.ino = m->ino;
	}
	return synth_buf_put(b, PERF_RECORD_MMAP2, misc, &body, sizeof(body),
			     named ? m->path : "//anon", named ? m->path_len : 6);
}

/* Read by another process, because the kernel may not answer (ask.h). */
struct maps_question {
	char path[MAPS_PATH];
	int fd;                /* -1: not open yet */
	uint64_t addr;         /* where the next batch begins */
	struct procmap *batch; /* MAPS_BATCH */
	size_t n;              /* of the batch */
	char *v;               /* the text */
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

/* The build ids of a batch. Another question, so that the batch is kept if there is no answer. */
struct build_ids_question {
	int fd;
	size_t n;
	struct procmap_build_id v[MAPS_BATCH]; /* ino 0: not wanted */
};

static void drop_build_ids(void *question)
{
	cleanup_close(&((struct build_ids_question *)question)->fd);
}

static int query_build_ids(void *question)
{
	struct build_ids_question *q = question;

	for (size_t i = 0; i < q->n; i++)
		if (q->v[i].ino)
			procmap_read_build_id(q->fd, &q->v[i]);
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
static int want_build_ids(struct synth_maps *maps, const struct maps_question *q, pid_t pid,
			  struct build_ids_question *ids)
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
		ids->v[i] = (struct procmap_build_id){.start = m->start,
						      .ino = permitted ? m->ino : 0,
						      .maj = m->maj,
						      .min = m->min};
		n += ids->v[i].ino != 0;
	}
	return n;
}

/* 0, also if there is no answer; -ENOMEM. */
static int ask_build_ids(struct synth_maps *maps, const struct maps_question *q, pid_t pid,
			 struct build_ids_question *ids)
{
	int r = want_build_ids(maps, q, pid, ids);

	if (r <= 0)
		return r;
	ids->n = q->n;
	ids->fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	if (ids->fd >= 0 && ask(pid, query_build_ids, drop_build_ids, ids, sizeof(*ids)) != -ETIME)
		drop_build_ids(ids);
	return 0;
}

/*
 * 0, also if the process ended or is not ours; -ENOTTY: the kernel lacks the ioctl; -ENOMEM; errors
 * of put_map.
 */
static int put_queried(struct synth_maps *maps, struct synth_buf *b, pid_t pid,
		       struct maps_question *q)
{
	struct build_ids_question ids;
	int r;

	do {
		r = ask_maps(pid, query_batch, q);
		if (r)
			return r == -ENOTTY ? r : 0;
		r = ask_build_ids(maps, q, pid, &ids);
		for (size_t i = 0; i < q->n && !r; i++)
			r = put_map(maps, b, pid, &q->batch[i].map, &ids.v[i]);
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
			r = put_map(maps, b, pid, &m, NULL);
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
