#include "eventpipe/perf_map.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "container/proc.h"
#include "eventpipe/perf_map_undo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PERF_MAP_RETRY_NS (10 * NS_PER_MS) /* while another profcpu begins or ends with the same map */
#define PERF_MAP_UNDO_NS NS_PER_S /* for switching off what could not be switched on in time */

struct perf_map {
	pid_t pid;
	struct opener_process process;
	char dir[PATH_MAX], name[PERF_MAP_NAME_BYTES], mark_name[PERF_MAP_NAME_BYTES];
	enum perf_map_way way;
	bool replaced;
	int dir_fd, map_fd, mark_fd;
	struct perf_map_mark mark;
	struct target_file mark_file;
	uint64_t enable_ns;
};

__attribute__((format(printf, 3, 4))) static int perf_map_fail(struct perf_map_error *err, int code, const char *format, ...)
{
	va_list args;

	err->code = code;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return code;
}

static int perf_map_port_fail(struct perf_map_error *err, const struct port_error *port)
{
	err->code = port->code;
	if (port->code == -ENOTSUP && port->hresult == IPC_E_UNKNOWN_COMMAND)
		snprintf(err->text, sizeof(err->text), "it runs .NET 7 or older, which cannot switch a perf map on");
	else
		port_error_text(port, err->text, sizeof(err->text));
	return port->code;
}

static int perf_map_dir_fail(struct perf_map_error *err, const struct perf_map *m, int code)
{
	return perf_map_fail(err, code, "nothing can be written to %s of process %d: %s", m->dir, m->pid, strerror(-code));
}

static void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	cleanup_close(&m->dir_fd);
	cleanup_close(&m->map_fd);
	cleanup_close(&m->mark_fd);
	free(m);
}

static void perf_map_close_mark(struct perf_map *m)
{
	cleanup_close(&m->mark_fd);
	m->mark_fd = -1;
}

/* With the mark locked exclusively: takes all back and leaves nothing open. */
static int perf_map_take_back(struct opener *o, struct perf_map *m, uint64_t deadline_ns, struct port_error *err)
{
	struct perf_map_undo undo = {
		.dir_fd = m->dir_fd,
		.mark = m->mark,
		.mark_file = m->mark_file,
		.pid = m->pid,
		.replaced = m->replaced,
	};
	int r = perf_map_undo(o, &undo, deadline_ns, err);

	perf_map_close_mark(m);
	return r;
}

/* Whether the process maps a jitdump of its own, which is how perf is told of it. */
static bool perf_map_has_jitdump(pid_t pid, pid_t ns_pid)
{
	AUTO_FREE char *text = NULL;
	char name[PERF_MAP_NAME_BYTES];
	size_t len;

	snprintf(name, sizeof(name), "/jit-%d.dump\n", ns_pid);
	return !proc_read(pid, 0, "maps", PROC_MAPS_MAX, &text, &len) && strstr(text, name);
}

/* A file that would be overwritten, though nobody writes it now. */
static int perf_map_check_rest(const struct perf_map *m, struct perf_map_error *err)
{
	char info[PERF_MAP_NAME_BYTES];
	const char *names[] = {m->name, info};
	struct stat st;

	perf_map_info_name(m->process.ns_pid, info);
	for (size_t i = 0; i < 2; i++)
		if (!fstatat(m->dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW))
			return perf_map_fail(err, -EEXIST,
					     "%s/%s of process %d is there, and no process writes it; remove it if it is not needed", m->dir,
					     names[i], m->pid);
	return 0;
}

static int perf_map_write_mark(struct perf_map *m)
{
	char text[PERF_MAP_MARK_MAX];
	size_t len = perf_map_mark_text(&m->mark, text, sizeof(text));

	return len ? file_pwrite_all(m->mark_fd, text, len, 0) : -E2BIG;
}

/* Finds the files that the runtime writes now, and that they are where they can be removed. */
static int perf_map_find_files(struct perf_map *m, struct perf_map_error *err)
{
	char info[PERF_MAP_NAME_BYTES];
	AUTO_CLOSE int info_fd = -1;
	int r = target_writes(m->pid, m->name, &m->map_fd, &m->mark.map);

	if (r == -ENOENT)
		return perf_map_fail(err, -EACCES, "the runtime could not write %s/%s of process %d (no right, or no space)", m->dir, m->name,
				     m->pid);
	if (r)
		return perf_map_fail(err, r, "%s/%s of process %d cannot be read: %s", m->dir, m->name, m->pid, strerror(-r));
	if (!perf_map_mark_stands(m->dir_fd, m->name, &m->mark.map))
		return perf_map_fail(err, -EXDEV, "the runtime writes %s elsewhere than to %s of process %d", m->name, m->dir, m->pid);
	perf_map_info_name(m->process.ns_pid, info);
	if (target_writes(m->pid, info, &info_fd, &m->mark.info) || !perf_map_mark_stands(m->dir_fd, info, &m->mark.info))
		m->mark.info = (struct target_file){0};
	return 0;
}

/* What port_command gives where the runtime was not asked, or has refused. */
static bool perf_map_is_refusal(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -EACCES || error == -EPERM || error == -ESRCH ||
	       error == -ENOTSUP || error == -EREMOTEIO;
}

/* What was asked for could not be taken back: err has why it failed in the first place. */
static void perf_map_add_left(const struct perf_map *m, const struct port_error *port, struct perf_map_error *err)
{
	char text[PORT_TEXT_BYTES];
	size_t n = strlen(err->text);

	if (err->code == -ETIMEDOUT) {
		perf_map_fail(err, err->code, "process %d did not answer in time; is it stopped? Once it goes on it may still switch its perf "
			      "map on, which the next profcpu that records it takes back", m->pid);
		return;
	}
	port_error_text(port, text, sizeof(text));
	snprintf(err->text + n, sizeof(err->text) - n, "; it may stay switched on until the next profcpu collect on process %d: %s",
		 m->pid, text);
}

/* With a mark of ours that is locked: switches the map on. What fails is taken back. */
static int perf_map_enable(struct opener *o, struct perf_map *m, uint64_t deadline_ns, struct perf_map_error *err)
{
	static const unsigned char type[4] = {IPC_PERF_MAP_ONLY};
	struct port_error port = {0}, undo_port = {0};
	uint64_t begin = clock_monotonic_ns();
	bool asked = false;
	int r = perf_map_write_mark(m);

	if (r)
		perf_map_dir_fail(err, m, r);
	if (!r) {
		r = port_command(o, m->pid, IPC_ENABLE_PERF_MAP, type, sizeof(type), deadline_ns, &port);
		m->enable_ns = clock_monotonic_ns() - begin;
		asked = !perf_map_is_refusal(r);
		if (r)
			perf_map_port_fail(err, &port);
	}
	if (!r)
		r = perf_map_find_files(m, err);
	if (!r) {
		r = perf_map_write_mark(m);
		if (r)
			perf_map_dir_fail(err, m, r);
	}
	/* Not an atomic change: a sweep may have come between, and then all begins again. */
	if (!r)
		return perf_map_mark_lock(m->mark_fd, false) ? -EAGAIN : 0;
	if (!asked)
		target_dir_remove(m->dir_fd, m->mark_name, &m->mark_file); /* nothing was switched on */
	else if (perf_map_take_back(o, m, clock_monotonic_ns() + PERF_MAP_UNDO_NS, &undo_port))
		perf_map_add_left(m, &undo_port, err);
	return r;
}

/* No mark is there: 0, -EAGAIN to begin again, or why not. */
static int perf_map_begin_fresh(struct opener *o, struct perf_map *m, uint64_t deadline_ns, struct perf_map_error *err)
{
	struct target_file file;
	struct stat st;
	int r = target_writes(m->pid, m->name, &m->map_fd, &file);

	if (!r) {
		m->way = PERF_MAP_USERS;
		return 0;
	}
	if (r != -ENOENT)
		return perf_map_fail(err, r, "what process %d has open cannot be seen: %s", m->pid, strerror(-r));
	if (perf_map_has_jitdump(m->pid, m->process.ns_pid))
		return perf_map_fail(err, -EBUSY, "process %d writes a jitdump, which would end together with a perf map", m->pid);
	r = perf_map_check_rest(m, err);
	if (r)
		return r;
	if (!target_dir_is_open_to(m->dir_fd, m->process.uid))
		return perf_map_dir_fail(err, m, -EACCES);
	r = target_dir_create(m->dir_fd, m->mark_name, &m->mark_fd);
	if (r)
		return r == -EEXIST ? -EAGAIN : perf_map_dir_fail(err, m, r);
	if (perf_map_mark_lock(m->mark_fd, true) || fstat(m->mark_fd, &st))
		return -EAGAIN;
	m->mark_file = (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
	if (!perf_map_mark_stands(m->dir_fd, m->mark_name, &m->mark_file))
		return -EAGAIN;
	m->way = PERF_MAP_OURS;
	m->mark = (struct perf_map_mark){
		.ns_pid = m->process.ns_pid,
		.start_ticks = m->process.start_ticks,
		.pid_ns = perf_map_own_pid_ns(),
		.pid = m->pid,
	};
	return perf_map_enable(o, m, deadline_ns, err);
}

/* Whether the mark is there still and nobody holds it: it could not be taken back. */
static bool perf_map_is_left(const struct perf_map *m)
{
	struct target_file file;
	AUTO_CLOSE int fd = -1;

	return !perf_map_mark_open(m->dir_fd, m->mark_name, m->process.uid, &fd, &file) && file.dev == m->mark_file.dev &&
	       file.ino == m->mark_file.ino && !perf_map_mark_lock(fd, true);
}

/* A mark of a map that is not on, or of another process, and no one's any more. unread: 0, or why it cannot be read. */
static int perf_map_begin_stale(struct opener *o, struct perf_map *m, int unread, uint64_t deadline_ns, struct perf_map_error *err)
{
	struct perf_map_swept swept = {0};

	perf_map_close_mark(m);
	perf_map_sweep_mark(o, m->dir_fd, m->process.uid, m->mark_name, deadline_ns, &swept);
	if (swept.left)
		return perf_map_fail(err, swept.error, "what an earlier profcpu left in %s of process %d could not be taken back: %s", m->dir,
				     m->pid, strerror(-swept.error));
	if (unread == -ENODATA || !perf_map_is_left(m))
		return -EAGAIN;
	return perf_map_fail(err, -EBUSY, "%s/%s of process %d was left by a profcpu of which nothing can be seen from here; "
			     "remove it if none is at work there", m->dir, m->mark_name, m->pid);
}

/* A mark is there: shares the map with those who use it, or takes it over from one that was killed. */
static int perf_map_begin_marked(struct opener *o, struct perf_map *m, uint64_t deadline_ns, struct perf_map_error *err)
{
	struct target_file file;
	int r = perf_map_mark_lock(m->mark_fd, false);

	if (r || !perf_map_mark_stands(m->dir_fd, m->mark_name, &m->mark_file))
		return -EAGAIN;
	r = perf_map_mark_read(m->mark_fd, &m->mark);
	if (r || m->mark.ns_pid != m->process.ns_pid || m->mark.start_ticks != m->process.start_ticks || !m->mark.map.ino)
		return perf_map_begin_stale(o, m, r, deadline_ns, err);
	r = target_writes(m->pid, m->name, &m->map_fd, &file);
	if (!r && file.dev == m->mark.map.dev && file.ino == m->mark.map.ino) {
		m->way = PERF_MAP_OURS;
		return 0;
	}
	cleanup_close(&m->map_fd);
	m->map_fd = -1;
	if (r && r != -ENOENT)
		return perf_map_fail(err, r, "what process %d has open cannot be seen: %s", m->pid, strerror(-r));
	return perf_map_begin_stale(o, m, 0, deadline_ns, err);
}

static int perf_map_try(struct opener *o, struct perf_map *m, uint64_t deadline_ns, struct perf_map_error *err)
{
	int r = perf_map_mark_open(m->dir_fd, m->mark_name, m->process.uid, &m->mark_fd, &m->mark_file);

	if (!r)
		return perf_map_begin_marked(o, m, deadline_ns, err);
	if (r == -ENOENT)
		return perf_map_begin_fresh(o, m, deadline_ns, err);
	if (r == -EACCES || r == -EBADMSG)
		return perf_map_fail(err, -EBUSY, "another user has the perf map of process %d on (%s/%s)", m->pid, m->dir, m->mark_name);
	return perf_map_dir_fail(err, m, r);
}

static int perf_map_new(struct opener *o, pid_t pid, struct perf_map **ret_map, struct perf_map_error *err)
{
	struct perf_map *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return perf_map_fail(err, -ENOMEM, "out of memory");
	m->pid = pid;
	m->dir_fd = m->map_fd = m->mark_fd = -1;
	r = opener_hold(o, pid);
	if (!r)
		r = opener_process(o, pid, &m->process);
	if (r)
		perf_map_fail(err, r, "process %d cannot be looked into: %s", pid, strerror(-r));
	else if ((r = perf_map_dir(pid, m->dir, sizeof(m->dir))))
		perf_map_fail(err, r, "DOTNET_PerfMapJitDumpPath of process %d is no absolute path, or too long", pid);
	else if ((r = target_dir_open(o, pid, m->dir, &m->dir_fd)))
		perf_map_dir_fail(err, m, r);
	if (r) {
		perf_map_free(m);
		return r;
	}
	perf_map_name(m->process.ns_pid, m->name);
	perf_map_mark_name(m->process.ns_pid, m->mark_name);
	*ret_map = m;
	return 0;
}

int perf_map_begin(struct opener *o, pid_t pid, uint64_t deadline_ns, struct perf_map **ret_map, struct perf_map_error *err)
{
	struct timespec pause = {.tv_nsec = PERF_MAP_RETRY_NS};
	struct perf_map *m = NULL;
	int r = perf_map_new(o, pid, &m, err);

	if (r)
		return r;
	while ((r = perf_map_try(o, m, deadline_ns, err)) == -EAGAIN) {
		perf_map_close_mark(m);
		cleanup_close(&m->map_fd);
		m->map_fd = -1;
		if (clock_monotonic_ns() >= deadline_ns) {
			r = perf_map_fail(err, -EBUSY, "another profcpu is switching the perf map of process %d on or off", pid);
			break;
		}
		nanosleep(&pause, NULL);
	}
	if (r) {
		perf_map_free(m);
		return r;
	}
	*ret_map = m;
	return 0;
}

enum perf_map_way perf_map_way(const struct perf_map *m)
{
	return m->way;
}

int perf_map_fd(const struct perf_map *m)
{
	return m->map_fd;
}

uint64_t perf_map_enable_ns(const struct perf_map *m)
{
	return m->enable_ns;
}

void perf_map_is_replaced(struct perf_map *m)
{
	m->replaced = true;
}

int perf_map_end(struct opener *o, struct perf_map *m, uint64_t deadline_ns, struct perf_map_error *err)
{
	struct port_error port = {0};
	int r = 0;

	/* Whoever is the last to use it gets the exclusive lock. */
	if (m && m->way == PERF_MAP_OURS && !perf_map_mark_lock(m->mark_fd, true) &&
	    perf_map_mark_stands(m->dir_fd, m->mark_name, &m->mark_file)) {
		r = perf_map_take_back(o, m, deadline_ns, &port);
		if (r) {
			perf_map_port_fail(err, &port);
			size_t n = strlen(err->text);

			snprintf(err->text + n, sizeof(err->text) - n, "; %s/%s stays until the next profcpu collect on process %d", m->dir,
				 m->name, m->pid);
		}
	}
	perf_map_free(m);
	return r;
}
