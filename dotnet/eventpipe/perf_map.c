#include "dotnet/eventpipe/perf_map.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "container/proc.h"
#include "dotnet/eventpipe/perf_map_undo.h"

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

/* Pause while another profcpu switches the same map on or off. */
#define PERF_MAP_RETRY_NS (10 * NS_PER_MS)
/* Time to switch off a map that could not be switched on in time. */
#define PERF_MAP_UNDO_NS NS_PER_S

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

__attribute__((format(printf, 3, 4))) static int perf_map_fail(struct perf_map_error *err, int code,
							       const char *format, ...)
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
		snprintf(err->text, sizeof(err->text),
			 "it runs .NET 7 or older, which cannot switch a perf map on");
	else
		port_error_text(port, err->text, sizeof(err->text));
	return port->code;
}

static int perf_map_dir_fail(struct perf_map_error *err, const struct perf_map *m, int code)
{
	return perf_map_fail(err, code, "cannot write to %s of process %d: %s", m->dir, m->pid,
			     strerror(-code));
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

/* Undoes everything and closes all. The mark must be locked exclusively. */
static int perf_map_undo_ours(struct opener *o, struct perf_map *m, uint64_t deadline_ns,
			      struct port_error *err)
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

/* Whether the process writes a jitdump. It maps that file to make perf notice it. */
static bool perf_map_has_jitdump(pid_t pid, pid_t ns_pid)
{
	AUTO_FREE char *text = NULL;
	char name[PERF_MAP_NAME_BYTES];
	size_t len;

	snprintf(name, sizeof(name), "/jit-%d.dump\n", ns_pid);
	return !proc_read(pid, 0, "maps", PROC_MAPS_MAX, &text, &len) && strstr(text, name);
}

/* Fails if the runtime would overwrite a file that nobody writes now. */
static int perf_map_check_existing(const struct perf_map *m, struct perf_map_error *err)
{
	char info[PERF_MAP_NAME_BYTES];
	const char *names[] = {m->name, info};
	struct stat st;

	perf_map_info_name(m->process.ns_pid, info);
	for (size_t i = 0; i < 2; i++)
		if (!fstatat(m->dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW))
			return perf_map_fail(err, -EEXIST,
					     "%s/%s of process %d exists, but no process writes "
					     "it; remove it if nobody needs it",
					     m->dir, names[i], m->pid);
	return 0;
}

static int perf_map_write_mark(struct perf_map *m)
{
	char text[PERF_MAP_MARK_MAX];
	size_t len = perf_map_mark_text(&m->mark, text, sizeof(text));

	return len ? file_pwrite_all(m->mark_fd, text, len, 0) : -E2BIG;
}

/* Finds the files that the runtime writes, and checks that they can be removed. */
static int perf_map_find_files(struct perf_map *m, struct perf_map_error *err)
{
	char info[PERF_MAP_NAME_BYTES];
	AUTO_CLOSE int info_fd = -1;
	int r = target_dir_find_written_file(m->pid, m->name, &m->map_fd, &m->mark.map);

	if (r == -ENOENT)
		return perf_map_fail(
			err, -EACCES,
			"the runtime could not write %s/%s of process %d (no right, or no space)",
			m->dir, m->name, m->pid);
	if (r)
		return perf_map_fail(err, r, "%s/%s of process %d cannot be read: %s", m->dir,
				     m->name, m->pid, strerror(-r));
	if (!perf_map_mark_is_current(m->dir_fd, m->name, &m->mark.map))
		return perf_map_fail(err, -EXDEV,
				     "the runtime writes %s, but not to %s of process %d", m->name,
				     m->dir, m->pid);
	perf_map_info_name(m->process.ns_pid, info);
	if (target_dir_find_written_file(m->pid, info, &info_fd, &m->mark.info) ||
	    !perf_map_mark_is_current(m->dir_fd, info, &m->mark.info))
		m->mark.info = (struct target_file){0};
	return 0;
}

/* Whether this error of port_command means that the runtime got no request or refused it. */
static bool perf_map_is_refusal(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -EACCES || error == -EPERM ||
	       error == -ESRCH || error == -ENOTSUP || error == -EREMOTEIO;
}

/* Adds to err, the first error, that undoing failed too. */
static void perf_map_add_undo_error(const struct perf_map *m, const struct port_error *port,
				    struct perf_map_error *err)
{
	char text[PORT_TEXT_BYTES];
	size_t n = strlen(err->text);

	if (err->code == -ETIMEDOUT) {
		perf_map_fail(err, err->code,
			      "process %d did not answer in time; is it stopped? When it "
			      "continues, it may switch its perf map on; the next profcpu that "
			      "records it will undo that",
			      m->pid);
		return;
	}
	port_error_text(port, text, sizeof(text));
	snprintf(err->text + n, sizeof(err->text) - n,
		 "; it may stay switched on until the next profcpu collect on process %d: %s",
		 m->pid, text);
}

/* Switches the map on. We made the mark and hold its lock. Undoes everything on failure. */
static int perf_map_enable(struct opener *o, struct perf_map *m, uint64_t deadline_ns,
			   struct perf_map_error *err)
{
	static const unsigned char type[4] = {IPC_PERF_MAP_ONLY};
	struct port_error port = {0}, undo_port = {0};
	uint64_t begin = clock_monotonic_ns();
	bool asked = false;
	int r = perf_map_write_mark(m);

	if (r)
		perf_map_dir_fail(err, m, r);
	if (!r) {
		r = port_command(o, m->pid, IPC_ENABLE_PERF_MAP, type, sizeof(type), deadline_ns,
				 &port);
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
	/* Changing the lock is not atomic. If a sweep came in between, begin again. */
	if (!r)
		return perf_map_mark_lock(m->mark_fd, false) ? -EAGAIN : 0;
	if (!asked)
		target_dir_remove(m->dir_fd, m->mark_name,
				  &m->mark_file); /* nothing was switched on */
	else if (perf_map_undo_ours(o, m, clock_monotonic_ns() + PERF_MAP_UNDO_NS, &undo_port))
		perf_map_add_undo_error(m, &undo_port, err);
	return r;
}

/* Begins without a mark. 0; -EAGAIN: begin again; -errno. */
static int perf_map_begin_fresh(struct opener *o, struct perf_map *m, uint64_t deadline_ns,
				struct perf_map_error *err)
{
	struct target_file file;
	struct stat st;
	int r = target_dir_find_written_file(m->pid, m->name, &m->map_fd, &file);

	if (!r) {
		m->way = PERF_MAP_USERS;
		return 0;
	}
	if (r != -ENOENT)
		return perf_map_fail(err, r, "the open files of process %d cannot be read: %s",
				     m->pid, strerror(-r));
	if (perf_map_has_jitdump(m->pid, m->process.ns_pid))
		return perf_map_fail(
			err, -EBUSY,
			"process %d writes a jitdump, which would end together with a perf map",
			m->pid);
	r = perf_map_check_existing(m, err);
	if (r)
		return r;
	if (!target_dir_is_writable_by(m->dir_fd, m->process.uid))
		return perf_map_dir_fail(err, m, -EACCES);
	r = target_dir_create(m->dir_fd, m->mark_name, &m->mark_fd);
	if (r)
		return r == -EEXIST ? -EAGAIN : perf_map_dir_fail(err, m, r);
	if (perf_map_mark_lock(m->mark_fd, true) || fstat(m->mark_fd, &st))
		return -EAGAIN;
	m->mark_file = (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
	if (!perf_map_mark_is_current(m->dir_fd, m->mark_name, &m->mark_file))
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

/* Whether the mark still exists and nobody locks it: undoing it has failed. */
static bool perf_map_mark_is_unused(const struct perf_map *m)
{
	struct target_file file;
	AUTO_CLOSE int fd = -1;

	return !perf_map_mark_open(m->dir_fd, m->mark_name, m->process.uid, &fd, &file) &&
	       file.dev == m->mark_file.dev && file.ino == m->mark_file.ino &&
	       !perf_map_mark_lock(fd, true);
}

/*
 * Handles an unused mark whose map is not on or belongs to another process. unread: 0, or the error
 * of reading the mark.
 */
static int perf_map_begin_stale(struct opener *o, struct perf_map *m, int unread,
				uint64_t deadline_ns, struct perf_map_error *err)
{
	struct perf_map_sweep_counts swept = {0};

	perf_map_close_mark(m);
	perf_map_sweep_mark(o, m->dir_fd, m->process.uid, m->mark_name, deadline_ns, &swept);
	if (swept.left)
		return perf_map_fail(
			err, swept.error,
			"files of an earlier profcpu in %s of process %d could not be removed: %s",
			m->dir, m->pid, strerror(-swept.error));
	if (unread == -ENODATA || !perf_map_mark_is_unused(m))
		return -EAGAIN;
	return perf_map_fail(err, -EBUSY,
			     "%s/%s of process %d was left by a profcpu that is not visible from "
			     "here; remove it if no profcpu runs there",
			     m->dir, m->mark_name, m->pid);
}

/* Begins with a mark: shares the map with its users, or takes it over from a killed profcpu. */
static int perf_map_begin_marked(struct opener *o, struct perf_map *m, uint64_t deadline_ns,
				 struct perf_map_error *err)
{
	struct target_file file;
	int r = perf_map_mark_lock(m->mark_fd, false);

	if (r || !perf_map_mark_is_current(m->dir_fd, m->mark_name, &m->mark_file))
		return -EAGAIN;
	r = perf_map_mark_read(m->mark_fd, &m->mark);
	if (r || m->mark.ns_pid != m->process.ns_pid ||
	    m->mark.start_ticks != m->process.start_ticks || !m->mark.map.ino)
		return perf_map_begin_stale(o, m, r, deadline_ns, err);
	r = target_dir_find_written_file(m->pid, m->name, &m->map_fd, &file);
	if (!r && file.dev == m->mark.map.dev && file.ino == m->mark.map.ino) {
		m->way = PERF_MAP_OURS;
		return 0;
	}
	cleanup_close(&m->map_fd);
	m->map_fd = -1;
	if (r && r != -ENOENT)
		return perf_map_fail(err, r, "the open files of process %d cannot be read: %s",
				     m->pid, strerror(-r));
	return perf_map_begin_stale(o, m, 0, deadline_ns, err);
}

static int perf_map_try(struct opener *o, struct perf_map *m, uint64_t deadline_ns,
			struct perf_map_error *err)
{
	int r = perf_map_mark_open(m->dir_fd, m->mark_name, m->process.uid, &m->mark_fd,
				   &m->mark_file);

	if (!r)
		return perf_map_begin_marked(o, m, deadline_ns, err);
	if (r == -ENOENT)
		return perf_map_begin_fresh(o, m, deadline_ns, err);
	if (r == -EACCES || r == -EBADMSG)
		return perf_map_fail(
			err, -EBUSY,
			"another user has switched on the perf map of process %d (%s/%s)", m->pid,
			m->dir, m->mark_name);
	return perf_map_dir_fail(err, m, r);
}

static int perf_map_new(struct opener *o, pid_t pid, struct perf_map **ret_map,
			struct perf_map_error *err)
{
	struct perf_map *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return perf_map_fail(err, -ENOMEM, "out of memory");
	m->pid = pid;
	m->dir_fd = m->map_fd = m->mark_fd = -1;
	r = opener_pin(o, pid);
	if (!r)
		r = opener_process(o, pid, &m->process);
	if (r)
		perf_map_fail(err, r, "process %d cannot be inspected: %s", pid, strerror(-r));
	else if ((r = perf_map_dir(pid, m->dir, sizeof(m->dir))))
		perf_map_fail(err, r,
			      "DOTNET_PerfMapJitDumpPath of process %d is not an absolute path, or "
			      "is too long",
			      pid);
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

int perf_map_begin(struct opener *o, pid_t pid, uint64_t deadline_ns, struct perf_map **ret_map,
		   struct perf_map_error *err)
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
			r = perf_map_fail(
				err, -EBUSY,
				"another profcpu is switching the perf map of process %d on or off",
				pid);
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

void perf_map_set_replaced(struct perf_map *m)
{
	m->replaced = true;
}

int perf_map_end(struct opener *o, struct perf_map *m, uint64_t deadline_ns,
		 struct perf_map_error *err)
{
	struct port_error port = {0};
	int r = 0;

	/* Only the last user gets the exclusive lock. */
	if (m && m->way == PERF_MAP_OURS && !perf_map_mark_lock(m->mark_fd, true) &&
	    perf_map_mark_is_current(m->dir_fd, m->mark_name, &m->mark_file)) {
		r = perf_map_undo_ours(o, m, deadline_ns, &port);
		if (r) {
			perf_map_port_fail(err, &port);
			size_t n = strlen(err->text);

			snprintf(err->text + n, sizeof(err->text) - n,
				 "; %s/%s stays until the next profcpu collect on process %d",
				 m->dir, m->name, m->pid);
		}
	}
	perf_map_free(m);
	return r;
}
