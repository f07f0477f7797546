#include "container/proc.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"
#include "container/ask.h"
#include "container/memory_left.h"
#include "container/proc_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROC_PATH_BYTES 96
#define PROC_NAME_BYTES 64
#define PROC_DIR_BYTES 256
#define PROC_BATCH 512 /* names of a directory that one question reads */
/* A text over PROC_MAPS_SMALL takes at most this part of the memory that is left. */
#define PROC_MAPS_PART 8
#define PROC_MAPS_READ_NS (2 * NS_PER_S)
#define PROC_LINES_BYTES 32768     /* a longer line is refused */
#define PROC_PF_KTHREAD 0x00200000 /* linux/sched.h; in field 9 of stat since Linux 2.6.27 */

int proc_next_number(const char *path, DIR **dir, pid_t *ret_number)
{
	struct dirent *e;

	if (!*dir)
		*dir = opendir(path);
	while (*dir && (errno = 0, e = readdir(*dir))) {
		const char *p = e->d_name;
		uint64_t number;

		if (proc_number(&p, 10, &number) && !*p && number && number <= INT32_MAX) {
			*ret_number = (pid_t)number;
			return 1;
		}
	}
	return errno == ENOENT ? -ESRCH : -errno;
}

struct proc_numbers {
	DIR *dir; /* NULL: not open yet */
	bool last;
	size_t n;
	pid_t v[PROC_BATCH];
	char path[PROC_DIR_BYTES];
};

static int proc_read_numbers(void *state)
{
	struct proc_numbers *q = state;
	int r = 1;

	for (q->n = 0; q->n < PROC_BATCH; q->n++) {
		r = proc_next_number(q->path, &q->dir, &q->v[q->n]);
		if (r <= 0)
			break;
	}
	q->last = r <= 0;
	return r < 0 ? r : 0;
}

static void proc_drop_numbers(void *state)
{
	struct proc_numbers *q = state;

	if (q->dir)
		closedir(q->dir);
}

int proc_each_numeric_name(pid_t pid, const char *dir_path, int (*fn)(void *ctx, pid_t n),
			   void *ctx)
{
	struct proc_numbers q = {.dir = NULL};
	int r = 0;

	snprintf(q.path, sizeof(q.path), "%s", dir_path);
	while (!r && !q.last) {
		int error = ask(pid ? pid : ASK_PATHS, proc_read_numbers, proc_drop_numbers, &q,
				sizeof(q));

		if (error == -ETIME)
			return error;
		for (size_t i = 0; i < q.n && !r; i++)
			r = fn(ctx, q.v[i]);
		r = r ? r : error;
	}
	proc_drop_numbers(&q);
	return r;
}

int proc_each_pid(int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	return proc_each_numeric_name(0, "/proc", fn, ctx);
}

/* Opens a file of a process or thread. *ret_error: 0 or -errno. */
static int proc_open(pid_t pid, pid_t tid, const char *name, int *ret_error)
{
	char path[PROC_PATH_BYTES];

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*ret_error = fd < 0 ? -errno : 0;
	return fd;
}

/* The error of reading a file: -ESRCH instead of -ENOENT if the process has ended. */
static int proc_error(pid_t pid, pid_t tid, int error)
{
	char path[PROC_PATH_BYTES];

	if (error != -ENOENT)
		return error;
	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) ? -ESRCH : -ENOENT;
}

struct proc_reading {
	pid_t pid, tid;
	char name[PROC_NAME_BYTES];
	size_t max_bytes, len;
	char *text;
};

static int proc_read_now(void *state)
{
	struct proc_reading *q = state;
	int r;
	AUTO_CLOSE int fd = proc_open(q->pid, q->tid, q->name, &r);

	if (!r)
		r = file_read_fd(fd, q->max_bytes, &q->text, &q->len);
	return proc_error(q->pid, q->tid, r);
}

static void proc_drop_text(void *state)
{
	free(((struct proc_reading *)state)->text);
}

int proc_read(pid_t pid, pid_t tid, const char *name, size_t max_bytes, char **ret_text,
	      size_t *ret_len)
{
	struct proc_reading q = {.pid = pid, .tid = tid, .max_bytes = max_bytes};

	snprintf(q.name, sizeof(q.name), "%s", name);
	int r = ask(pid, proc_read_now, proc_drop_text, &q, sizeof(q));

	if (r)
		return r;
	*ret_text = q.text;
	*ret_len = q.len;
	return 0;
}

struct proc_opening {
	int fd;
	char path[PATH_MAX];
};

static int proc_open_now(void *state)
{
	struct proc_opening *q = state;

	q->fd = open(q->path, O_RDONLY | O_CLOEXEC);
	return q->fd < 0 ? -errno : 0;
}

static void proc_drop_opened(void *state)
{
	cleanup_close(&((struct proc_opening *)state)->fd);
}

int proc_open_path(pid_t pid, const char *path, int *ret_fd)
{
	const struct open_how cached = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_CACHED};
	struct proc_opening q = {.fd = -1};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &cached, sizeof(cached));

	/* The kernel has the names in memory, so no other process is needed. */
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	snprintf(q.path, sizeof(q.path), "%s", path);
	int r = ask(pid, proc_open_now, proc_drop_opened, &q, sizeof(q));

	if (!r)
		*ret_fd = q.fd;
	return r;
}

struct proc_start {
	char path[PATH_MAX];
	char text[PROC_START_BYTES];
	ssize_t len;
};

static int proc_read_start(void *state)
{
	struct proc_start *q = state;
	AUTO_CLOSE int fd = open(q->path, O_RDONLY | O_CLOEXEC);

	q->len = fd < 0 ? -1 : read(fd, q->text, sizeof(q->text) - 1);
	return q->len < 0 ? -errno : 0;
}

ssize_t proc_read_path(pid_t pid, const char *path, char *text, size_t cap)
{
	struct proc_start q = {.len = 0};

	snprintf(q.path, sizeof(q.path), "%s", path);
	int r = ask(pid, proc_read_start, NULL, &q, sizeof(q));

	if (r)
		return r;
	size_t len = (size_t)q.len < cap ? (size_t)q.len : cap - 1;

	memcpy(text, q.text, len);
	text[len] = 0;
	return (ssize_t)len;
}

struct proc_linking {
	pid_t pid;
	char name[PROC_NAME_BYTES];
	char text[PATH_MAX];
};

static int proc_link_now(void *state)
{
	struct proc_linking *q = state;
	char path[PROC_PATH_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/%s", q->pid, q->name);
	ssize_t n = readlink(path, q->text, sizeof(q->text) - 1);

	if (n < 0)
		return -errno;
	q->text[n] = 0;
	return 0;
}

int proc_link(pid_t pid, const char *name, char *text, size_t cap)
{
	struct proc_linking q = {.pid = pid};

	snprintf(q.name, sizeof(q.name), "%s", name);
	int r = ask(pid, proc_link_now, NULL, &q, sizeof(q));

	if (!r)
		snprintf(text, cap, "%s", q.text);
	return r;
}

/* One piece of maps: `kept` bytes are there, `got` more are read. */
struct proc_piece {
	pid_t pid;
	int fd; /* -1: not open yet */
	bool last;
	char *text;
	size_t kept, got;
};

/* Fills the text. The kernel gives about a page at a time. */
static int proc_read_piece(void *state)
{
	struct proc_piece *p = state;
	int r = 0;

	if (p->fd < 0)
		p->fd = proc_open(p->pid, 0, "maps", &r);
	for (p->got = 0; !r && !p->last && p->kept + p->got < PROC_LINES_BYTES;) {
		size_t len = p->kept + p->got;
		ssize_t n = read(p->fd, p->text + len, PROC_LINES_BYTES - len);

		if (n < 0 && errno != EINTR)
			r = -errno;
		p->last = !n;
		p->got += n > 0 ? (size_t)n : 0;
	}
	return r;
}

static void proc_drop_piece(void *state)
{
	struct proc_piece *p = state;

	cleanup_close(&p->fd);
	free(p->text);
}

int proc_scan_maps(pid_t pid, const struct proc_maps_limit *limit,
		   int (*fn)(void *ctx, char *lines, size_t len), void *ctx)
{
	struct proc_piece p = {.pid = pid, .fd = -1, .text = malloc(PROC_LINES_BYTES + 1)};
	size_t bytes = 0;
	int r = p.text ? 0 : -ENOMEM;

	while (!r && !p.last) {
		r = ask(pid, proc_read_piece, proc_drop_piece, &p, sizeof(p));
		if (r == -ETIME)
			return r;
		if (r || !p.got)
			break;
		size_t len = p.kept + p.got;
		const char *newline = memrchr(p.text, '\n', len);
		size_t whole = newline ? (size_t)(newline + 1 - p.text) : 0;
		char next = p.text[whole];

		bytes += p.got;
		p.text[whole] = 0;
		if (bytes > limit->max_bytes || len - whole == PROC_LINES_BYTES)
			r = -E2BIG;
		else if (clock_monotonic_ns() > limit->until_ns)
			r = -ETIMEDOUT;
		else if (whole)
			r = fn(ctx, p.text, whole);
		/* The rest of the last line comes with the next piece. */
		p.text[whole] = next;
		p.kept = len - whole;
		memmove(p.text, p.text + whole, p.kept);
	}
	proc_drop_piece(&p);
	return proc_error(pid, 0, r);
}

/* The text of proc_read_maps. */
struct proc_maps_text {
	char *v;
	size_t len, cap, max; /* max: 0 until it is known */
};

static int proc_maps_append(void *ctx, char *lines, size_t len)
{
	struct proc_maps_text *t = ctx;

	if (t->len + len > PROC_MAPS_SMALL && !t->max)
		t->max = (size_t)(memory_left() / PROC_MAPS_PART) + 1;
	if (t->max && t->len + len > t->max)
		return -E2BIG;
	if (vec_grow((void **)&t->v, &t->cap, 1, t->len + len + 1))
		return -ENOMEM;
	memcpy(t->v + t->len, lines, len + 1);
	t->len += len;
	return 0;
}

int proc_read_maps(pid_t pid, char **ret_text)
{
	const struct proc_maps_limit limit = {PROC_MAPS_MAX,
					      clock_monotonic_ns() + PROC_MAPS_READ_NS};
	struct proc_maps_text t = {0};
	int r = proc_scan_maps(pid, &limit, proc_maps_append, &t);

	/* A process without memory has no lines. */
	if (!r && !t.v)
		r = proc_maps_append(&t, "", 0);
	if (r)
		free(t.v);
	else
		*ret_text = t.v;
	return r;
}

/* Finds out by a flag in stat, for kernels without the line "Kthread". */
static int proc_status_kthread(pid_t pid, struct proc_status *s)
{
	AUTO_FREE char *text = NULL;
	uint64_t flags;
	size_t len;
	int r = proc_read(pid, 0, "stat", PROC_FILE_MAX, &text, &len);

	if (!r)
		r = proc_stat_field(text, 9, &flags);
	if (!r)
		s->kernel_thread = flags & PROC_PF_KTHREAD;
	return r;
}

int proc_status(pid_t pid, struct proc_status *ret_status)
{
	struct proc_status s = {.seccomp = -1};
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = proc_read(pid, 0, "status", PROC_FILE_MAX, &text, &len);

	if (r)
		return r;
	unsigned seen = proc_status_scan(text, &s);

	if (!(seen & PROC_STATUS_PID))
		return -EBADMSG;
	if (!(seen & (PROC_STATUS_KTHREAD | PROC_STATUS_VM)) && s.state != 'Z' && s.state != 'X') {
		r = proc_status_kthread(pid, &s);
		if (r)
			return r;
	}
	*ret_status = s;
	return 0;
}

bool proc_is_own_namespace(void)
{
	char self[32];
	ssize_t len = readlink("/proc/self", self, sizeof(self) - 1);
	const char *p = self;
	uint64_t pid;

	if (len <= 0)
		return false;
	self[len] = 0;
	return proc_number(&p, 10, &pid) && !*p && pid == (uint64_t)getpid();
}

int proc_start_ticks(pid_t pid, uint64_t *ret_ticks)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = proc_read(pid, 0, "stat", PROC_FILE_MAX, &text, &len);

	return r ? r : proc_stat_field(text, PROC_STAT_START_TICKS, ret_ticks);
}

uint64_t proc_age_ns(uint64_t start_ticks, uint64_t boot_ns)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t hz_or_one = hz > 0 ? (uint64_t)hz : 1;
	uint64_t start_ns =
		start_ticks / hz_or_one * NS_PER_S + start_ticks % hz_or_one * NS_PER_S / hz_or_one;

	return start_ns < boot_ns ? boot_ns - start_ns : 0;
}

uint64_t proc_start_ns(pid_t pid, uint64_t now_ns)
{
	uint64_t ticks, age_ns;

	if (proc_start_ticks(pid, &ticks))
		return now_ns;
	age_ns = proc_age_ns(ticks, clock_boottime_ns());
	return age_ns < now_ns ? now_ns - age_ns : now_ns;
}
