#include "sampler/synth_maps.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "container/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#define MAPS_TEXT_MAX ((size_t)256 << 20) /* of one process; more than a million mappings */
#define MAPS_READ ((size_t)64 << 10)

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

/* Reads the build id if the file is on a file system that answers. 0 or -ENOMEM. */
static int read_build_id(struct synth_maps *maps, int fd, pid_t pid)
{
	const struct proc_map *m = &maps->entry.map;
	int r = m->ino && !maps->opener ? opener_new(&maps->opener) : 0;

	if (!r && m->ino && opener_may_read_device(maps->opener, pid, makedev(m->maj, m->min)))
		procmap_build_id(fd, &maps->entry);
	return r;
}

/* -ENOTTY: the kernel lacks the ioctl. */
static int put_queried(struct synth_maps *maps, struct synth_buf *b, int fd, pid_t pid)
{
	uint64_t addr = 0;
	int r;

	while ((r = procmap_next(fd, addr, &maps->entry)) > 0) {
		const struct procmap *e = &maps->entry;

		r = read_build_id(maps, fd, pid);
		if (!r)
			r = put_map(maps, b, pid, &e->map, e->build_id, e->build_id_len);
		if (r || e->map.end <= addr)
			return r;
		addr = e->map.end;
	}
	if (!r || addr || r == -ESRCH)
		return 0; /* all, or the process has ended */
	maps->no_query = true;
	return -ENOTTY;
}

static int read_text(struct synth_maps *maps, int fd)
{
	for (maps->len = 0; maps->len < MAPS_TEXT_MAX;) {
		if (vec_reserve(maps, MAPS_READ))
			return -ENOMEM;
		ssize_t n = read(fd, maps->v + maps->len, maps->cap - maps->len - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		maps->len += (size_t)n;
	}
	maps->v[maps->len] = 0;
	return 0;
}

static int put_text(struct synth_maps *maps, struct synth_buf *b, int fd, pid_t pid)
{
	struct proc_map m;
	int r = read_text(maps, fd);
	char *cursor = maps->v;

	while (!r && proc_map_next(&cursor, &m))
		if (m.prot & PROT_EXEC)
			r = put_map(maps, b, pid, &m, NULL, 0);
	return r;
}

int synth_maps_put(struct synth_maps *maps, struct synth_buf *b, int task_fd, pid_t pid)
{
	char path[32];
	int r = -ENOTTY;

	snprintf(path, sizeof(path), "%d/maps", pid);
	AUTO_CLOSE int fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0; /* ended, or no permission: its frames get no names */
	maps->bytes = 0;
	if (!maps->no_query)
		r = put_queried(maps, b, fd, pid);
	if (r == -ENOTTY)
		r = put_text(maps, b, fd, pid);
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
		free(maps->v);
	}
	free(maps);
}
