/* State of running processes, as the records that would have created it. */
#include "sampler/synth_maps.h"

#include "base/cleanup.h"
#include "container/ask.h"
#include "container/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYNTH_STAT_BYTES 512
#define SYNTH_PATH 256
#define SYNTH_THREADS 96 /* read by one question */
#define SYNTH_KTHREAD \
	0x00200000u /* PF_KTHREAD in the flags of /proc/PID/stat; perf and ps use it too */

/* Bodies of the records, as the kernel writes them (include/uapi/linux/perf_event.h). */
struct body_task {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};
struct body_comm {
	uint32_t pid, tid;
};
_Static_assert(sizeof(struct body_task) == 24, "record layout");

/* Counts a process that is there but could not be read; others have ended, or are not ours. */
static int leave_out(struct synth_buf *b, int error)
{
	if (b->s && (error == EMFILE || error == ENFILE))
		b->s->stats.unread++;
	return error == ENOMEM ? -ENOMEM : 0;
}

static int put_task(struct synth_buf *b, pid_t pid, pid_t tid, pid_t parent, const char *comm,
		    size_t comm_len)
{
	struct body_task task = {(uint32_t)pid, (uint32_t)parent, (uint32_t)tid, (uint32_t)parent,
				 0};
	struct body_comm body = {(uint32_t)pid, (uint32_t)tid};
	/* perf's mark of a made-up FORK: the child does not take over the parent's maps. */
	int r = synth_buf_put(b, PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, &task, sizeof(task),
			      NULL, 0);

	return r ? r : synth_buf_put(b, PERF_RECORD_COMM, 0, &body, sizeof(body), comm, comm_len);
}

/* The first thread, whose stat also has the parent. */
static int put_leader(struct synth_buf *b, pid_t pid, struct synth_maps *maps)
{
	char path[SYNTH_PATH], stat[SYNTH_STAT_BYTES];
	unsigned flags = 0;
	int parent = 0;

	snprintf(path, sizeof(path), "%s/%d/task/%d/stat", b->from.proc, pid, pid);
	ssize_t n = proc_read_path(pid, path, stat, sizeof(stat));

	if (n <= 0)
		return leave_out(b, (int)-n);
	char *name = strchr(stat, '('), *end = strrchr(stat, ')');

	if (!name || !end || end < name ||
	    sscanf(end + 1, " %*c %d %*d %*d %*d %*d %u", &parent, &flags) != 2)
		return 0;
	int r = put_task(b, pid, pid, parent, name + 1, (size_t)(end - name - 1));

	if (r || flags & SYNTH_KTHREAD)
		return r;
	return synth_maps_put(maps, b, pid);
}

/* Further threads of a process, some at a time. Another process reads them (ask.h). */
struct threads_question {
	pid_t pid;
	DIR *dir; /* NULL: not open yet */
	bool last;
	size_t n;
	struct {
		pid_t tid;
		int len; /* of the name */
		char comm[PROC_COMM_BYTES];
	} v[SYNTH_THREADS];
	char path[SYNTH_PATH];
};
_Static_assert(sizeof(struct threads_question) <= ASK_BYTES, "one question");

static void drop_threads(void *question)
{
	struct threads_question *q = question;

	if (q->dir)
		closedir(q->dir);
}

static int read_threads(void *question)
{
	struct threads_question *q = question;
	int r = 1;

	for (q->n = 0; q->n < SYNTH_THREADS;) {
		char path[32];
		pid_t tid;

		r = proc_next_number(q->path, &q->dir, &tid);
		if (r <= 0)
			break;
		snprintf(path, sizeof(path), "%d/comm", tid);
		AUTO_CLOSE int fd =
			tid == q->pid ? -1 : openat(dirfd(q->dir), path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, q->v[q->n].comm, sizeof(q->v[q->n].comm));

		if (n <= 0)
			continue;
		q->v[q->n].tid = tid;
		q->v[q->n].len = (int)n - (q->v[q->n].comm[n - 1] == '\n');
		q->n++;
	}
	q->last = r <= 0;
	return q->dir ? 0 : r;
}

static int put_process(struct synth_buf *b, pid_t pid, struct synth_maps *maps)
{
	struct threads_question q = {.pid = pid};
	bool first = true;
	int r = 0;

	snprintf(q.path, sizeof(q.path), "%s/%d/task", b->from.proc, pid);
	while (!r && !q.last) {
		int error = ask(pid, read_threads, drop_threads, &q, sizeof(q));

		if (error)
			return leave_out(b, -error);
		if (first)
			r = put_leader(b, pid, maps);
		first = false;
		for (size_t i = 0; i < q.n && !r; i++)
			r = put_task(b, pid, q.v[i].tid, pid, q.v[i].comm, (size_t)q.v[i].len);
	}
	drop_threads(&q);
	return r;
}

static int put_processes(struct synth_buf *b)
{
	const struct sampler *s = b->s;
	struct target_threads all = {0};
	struct synth_maps *maps = calloc(1, sizeof(*maps));
	int r = maps ? 0 : -ENOMEM;

	if (s->options.system_wide && !r)
		r = targets_all(sampler_proc(&s->options), &all);
	for (size_t i = 0; i < s->targets.list.len && !r && !s->options.system_wide; i++)
		r = vec_push(&all, ((struct target_thread){s->targets.list.v[i], 0}));
	for (size_t i = 0; i < all.len && !r; i++) {
		r = put_process(b, all.v[i].pid, maps);
		if (!r)
			r = sampler_take_early(b->s);
	}
	vec_free(&all);
	synth_maps_free(maps);
	return r;
}

struct sampler_synthesis sampler_synthesis(const struct sampler *s)
{
	return (struct sampler_synthesis){sampler_proc(&s->options), s->identified};
}

int sampler_synthesize_process(const struct sampler_synthesis *from, pid_t pid,
			       sampler_synthesized take, void *ctx)
{
	struct synth_maps *maps = calloc(1, sizeof(*maps));
	struct synth_buf b;
	int r = synth_buf_new(&b, NULL, from);

	b.take = take;
	b.ctx = ctx;
	if (!r)
		r = maps ? put_process(&b, pid, maps) : -ENOMEM;
	if (!r)
		r = synth_buf_flush(&b);
	synth_buf_free(&b);
	synth_maps_free(maps);
	return r;
}

int sampler_synthesize(struct sampler *s)
{
	const struct sampler_synthesis from = sampler_synthesis(s);
	struct synth_buf b;
	int r = synth_buf_new(&b, s, &from);

	if (!r)
		r = synth_kernel(&b);
	if (!r)
		r = put_processes(&b);
	if (!r)
		r = synth_buf_flush(&b);
	synth_buf_free(&b);
	if (r > 0)
		sampler_free_early(s);
	return r < 0 ? r : 0;
}
