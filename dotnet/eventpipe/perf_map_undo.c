#include "dotnet/eventpipe/perf_map_undo.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/dotnet_process.h"
#include "container/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Age after which an empty mark counts as left by a killed profcpu. */
#define UNDO_MAKING_S 10
/* Time for a process to end after its runtime has closed the port. */
#define UNDO_ENDING_NS (200 * NS_PER_MS)
#define UNDO_POLL_NS (5 * NS_PER_MS) /* interval of checks whether it has ended */

int perf_map_dir(pid_t pid, char *buf, size_t cap)
{
	int r = dotnet_env(pid, "DOTNET_PerfMapJitDumpPath", buf, cap);

	if (r == -ENOENT)
		r = dotnet_env(pid, "COMPlus_PerfMapJitDumpPath", buf, cap);
	if (r == -ENAMETOOLONG || (!r && buf[0] != '/'))
		return -ENOTSUP;
	if (r)
		snprintf(buf, cap, "/tmp");
	return 0;
}

/*
 * Finds a file whose identity a killed profcpu could not note. It is ours if it was created after
 * the mark.
 */
static bool undo_born_after(int dir_fd, const char *name, const char *mark_name,
			    struct target_file *ret_file)
{
	struct statx mark, map;
	struct stat st;

	if (statx(dir_fd, mark_name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &mark) ||
	    statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &map) ||
	    !(mark.stx_mask & map.stx_mask & STATX_BTIME) ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	if (map.stx_btime.tv_sec < mark.stx_btime.tv_sec ||
	    (map.stx_btime.tv_sec == mark.stx_btime.tv_sec &&
	     map.stx_btime.tv_nsec < mark.stx_btime.tv_nsec))
		return false;
	*ret_file = (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
	return true;
}

static bool undo_is_alive(const struct perf_map_undo *undo)
{
	uint64_t start;

	return undo->pid && !proc_start_ticks(undo->pid, &start) && start == undo->mark.start_ticks;
}

/*
 * Whether the process lives and can still act. A process that ends frees its memory first, and
 * keeps its files and port open meanwhile. Reads the size of its memory, because everyone may read
 * it.
 */
static bool undo_can_act(const struct perf_map_undo *undo)
{
	AUTO_FREE char *text = NULL;
	uint64_t start, vsize;
	size_t len;

	return undo->pid && !proc_read(undo->pid, 0, "stat", PROC_FILE_MAX, &text, &len) &&
	       !proc_stat_field(text, PROC_STAT_START_TICKS, &start) &&
	       start == undo->mark.start_ticks && !proc_stat_field(text, PROC_STAT_VSIZE, &vsize) &&
	       vsize;
}

/* Whether the runtime may still be writing the map of the mark. */
static bool undo_is_on(const struct perf_map_undo *undo)
{
	char name[PERF_MAP_NAME_BYTES];
	struct target_file file;
	AUTO_CLOSE int fd = -1;

	/*
	 * The mark has no file yet, so the command may still be on its way. A later command is
	 * answered after it.
	 */
	if (!undo->mark.map.ino)
		return true;
	perf_map_name(undo->mark.ns_pid, name);
	int r = target_dir_find_written_file(undo->pid, name, &fd, &file);

	if (!r)
		return file.dev == undo->mark.map.dev && file.ino == undo->mark.map.ino;
	return r != -ENOENT && r != -ESRCH;
}

/*
 * Whether an ending runtime causes this error: no port, or a connection that ends before the reply.
 */
static bool undo_is_ending(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -EBADMSG ||
	       error == -ECONNRESET || error == -EPIPE;
}

/* Returns 0 when the map is not being written any more; errors of port_command. */
static int undo_switch_off(struct opener *o, const struct perf_map_undo *undo, uint64_t deadline_ns,
			   struct port_error *err)
{
	struct timespec pause = {.tv_nsec = UNDO_POLL_NS};

	if (undo->replaced || !undo_can_act(undo) || !undo_is_on(undo))
		return 0;
	int r = port_command(o, undo->pid, IPC_DISABLE_PERF_MAP, NULL, 0, deadline_ns, err);
	uint64_t until_ns = clock_monotonic_ns() + (undo_is_ending(r) ? UNDO_ENDING_NS : 0);

	if (until_ns > deadline_ns)
		until_ns = deadline_ns;
	while (r && r != -ENOTSUP && undo_can_act(undo) && undo_is_on(undo)) {
		if (clock_monotonic_ns() >= until_ns)
			return r;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Whether the process has its perf maps in the directory. */
static bool undo_shares_dir(struct opener *o, int dir_fd, pid_t pid)
{
	struct stat ours, its;
	char dir[PATH_MAX];
	AUTO_CLOSE int fd = -1;

	return !opener_pin(o, pid) && !perf_map_dir(pid, dir, sizeof(dir)) &&
	       !target_dir_open(o, pid, dir, &fd) && !fstat(dir_fd, &ours) && !fstat(fd, &its) &&
	       ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

struct undo_search {
	struct opener *o;
	int dir_fd;
	const struct perf_map_mark *mark;
	pid_t pid;
};

static int try_successor(void *ctx, pid_t pid)
{
	struct undo_search *s = ctx;
	char name[PERF_MAP_NAME_BYTES];
	struct proc_status status;
	struct target_file file;
	AUTO_CLOSE int fd = -1;

	perf_map_name(s->mark->ns_pid, name);
	/* Check the directory last: the opener keeps a limited number of process roots open. */
	if (proc_status(pid, &status) || status.ns_pid != s->mark->ns_pid ||
	    target_dir_find_written_file(pid, name, &fd, &file) ||
	    !undo_shares_dir(s->o, s->dir_fd, pid))
		return 0;
	s->pid = pid;
	return 1;
}

/*
 * If the mark's process has ended, finds the process that now has its number and writes a perf map;
 * 0: none.
 */
static pid_t find_successor(struct opener *o, const struct perf_map_undo *undo)
{
	struct undo_search s = {.o = o, .dir_fd = undo->dir_fd, .mark = &undo->mark};

	if (undo->replaced || !undo_is_alive(undo))
		(void)proc_each_pid(try_successor, &s);
	return s.pid;
}

static bool is_written_by(pid_t successor, const char *name, const struct target_file *file)
{
	struct target_file written;
	AUTO_CLOSE int fd = -1;

	return successor && !target_dir_find_written_file(successor, name, &fd, &written) &&
	       written.dev == file->dev && written.ino == file->ino;
}

static int undo_remove(const struct perf_map_undo *undo, pid_t successor, const char *name,
		       const struct target_file *file)
{
	int r = file->ino && !is_written_by(successor, name, file)
			? target_dir_remove(undo->dir_fd, name, file)
			: 0;

	return r == -ENOENT ? 0 : r;
}

int perf_map_undo(struct opener *o, const struct perf_map_undo *undo, uint64_t deadline_ns,
		  struct port_error *err)
{
	char map[PERF_MAP_NAME_BYTES], info[PERF_MAP_NAME_BYTES], mark[PERF_MAP_NAME_BYTES];
	struct perf_map_mark m = undo->mark;

	int r = undo_switch_off(o, undo, deadline_ns, err);

	if (r)
		return r;
	perf_map_name(m.ns_pid, map);
	perf_map_info_name(m.ns_pid, info);
	perf_map_mark_name(m.ns_pid, mark);
	if (!m.map.ino) {
		undo_born_after(undo->dir_fd, map, mark, &m.map);
		undo_born_after(undo->dir_fd, info, mark, &m.info);
	}
	pid_t successor = find_successor(o, undo);

	r = undo_remove(undo, successor, map, &m.map);
	if (!r)
		r = undo_remove(undo, successor, info, &m.info);
	/* Remove the mark last. After a failure it still shows what is left to do. */
	if (!r)
		r = undo_remove(undo, successor, mark, &undo->mark_file);
	if (r)
		*err = (struct port_error){.code = r, .what = "the perf map cannot be removed"};
	return r;
}

struct undo_sweep {
	struct opener *o;
	int dir_fd;
	uid_t uid; /* of the process that owns the directory */
	uint64_t deadline_ns;
	struct perf_map_unresponsive *silent; /* NULL: send requests to all */
	struct perf_map_sweep_counts swept;
};

/*
 * Checks a PID. Many processes may share that start time, and the first process of each container
 * has the same innermost PID.
 */
static int undo_try_pid(void *ctx, pid_t pid)
{
	struct undo_search *s = ctx;
	struct proc_status status;
	uint64_t start;

	if (proc_start_ticks(pid, &start) || start != s->mark->start_ticks ||
	    proc_status(pid, &status) || status.ns_pid != s->mark->ns_pid ||
	    !undo_shares_dir(s->o, s->dir_fd, pid))
		return 0;
	s->pid = pid;
	return 1;
}

/* Finds the process of a mark. 0 and its PID, or PID 0 if it has ended; -ESRCH: unknown. */
static int undo_find(const struct undo_sweep *sweep, const struct perf_map_mark *mark,
		     pid_t *ret_pid)
{
	struct undo_search s = {.o = sweep->o, .dir_fd = sweep->dir_fd, .mark = mark};
	uint64_t start;
	int r;

	if (mark->pid_ns && mark->pid_ns == perf_map_own_pid_ns()) {
		if (proc_start_ticks(mark->pid, &start) || start != mark->start_ticks) {
			*ret_pid = 0;
			return 0;
		}
		r = undo_try_pid(&s, mark->pid);
	} else {
		/* The mark's maker had another PID namespace than ours. */
		r = proc_each_pid(undo_try_pid, &s);
	}
	if (r != 1)
		return -ESRCH;
	*ret_pid = s.pid;
	return 0;
}

static int sweep_count_left(struct undo_sweep *s, int error, pid_t pid)
{
	s->swept.left++;
	if (pid || !s->swept.pid) {
		s->swept.error = error;
		s->swept.pid = pid;
	}
	return 0;
}

static bool sweep_is_silent(const struct perf_map_unresponsive *silent,
			    const struct perf_map_undo *undo)
{
	for (unsigned i = 0; silent && undo->pid && i < silent->n && i < PERF_MAP_UNRESPONSIVE_MAX;
	     i++)
		if (silent->v[i].pid == undo->pid &&
		    silent->v[i].start_ticks == undo->mark.start_ticks)
			return true;
	return false;
}

/* Undoes a mark. Waits only once for a process that hangs, even if many share its directory. */
static int sweep_undo(struct undo_sweep *s, const struct perf_map_undo *undo)
{
	struct port_error err = {0};
	int r = sweep_is_silent(s->silent, undo) ? -ETIMEDOUT
						 : perf_map_undo(s->o, undo, s->deadline_ns, &err);

	if (r == -ETIMEDOUT && s->silent && undo->pid && !sweep_is_silent(s->silent, undo)) {
		unsigned at = s->silent->n++ % PERF_MAP_UNRESPONSIVE_MAX;

		s->silent->v[at].pid = undo->pid;
		s->silent->v[at].start_ticks = undo->mark.start_ticks;
	}
	if (r)
		return sweep_count_left(s, r, undo->pid);
	s->swept.removed++;
	return 0;
}

static int sweep_empty(struct undo_sweep *s, const char *name, int mark_fd,
		       const struct target_file *file)
{
	struct stat st;

	if (fstat(mark_fd, &st) || time(NULL) - st.st_mtime < UNDO_MAKING_S)
		return 0;
	int r = target_dir_remove(s->dir_fd, name, file);

	return r && r != -ENOENT ? sweep_count_left(s, r, 0) : 0;
}

/* Whether no other user owns a file with that name. */
static bool sweep_owns(int dir_fd, const char *name, uid_t uid)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ? errno == ENOENT : st.st_uid == uid;
}

/*
 * Whether the mark's owner may request this: an ordinary user's mark applies only to that user's
 * processes and files.
 */
static bool sweep_trusts(int dir_fd, int mark_fd, const struct perf_map_mark *mark, pid_t pid)
{
	char map[PERF_MAP_NAME_BYTES], info[PERF_MAP_NAME_BYTES];
	struct proc_status status;
	struct stat st;

	if (fstat(mark_fd, &st))
		return false;
	if (!st.st_uid || st.st_uid == geteuid())
		return true;
	perf_map_name(mark->ns_pid, map);
	perf_map_info_name(mark->ns_pid, info);
	if (!sweep_owns(dir_fd, map, st.st_uid) || !sweep_owns(dir_fd, info, st.st_uid))
		return false;
	return !pid || (!proc_status(pid, &status) && status.uid == st.st_uid);
}

static int sweep_mark(void *ctx, const char *name)
{
	struct undo_sweep *s = ctx;
	struct perf_map_undo undo = {.dir_fd = s->dir_fd};
	char right_name[PERF_MAP_NAME_BYTES];
	AUTO_CLOSE int fd = -1;

	/* Anyone who may write to the directory can make any number of marks. */
	if (clock_monotonic_ns() >= s->deadline_ns) {
		sweep_count_left(s, -ETIMEDOUT, 0);
		return -ETIMEDOUT;
	}
	if (perf_map_mark_open(s->dir_fd, name, s->uid, &fd, &undo.mark_file))
		return 0;
	if (perf_map_mark_lock(fd, true)) {
		s->swept.in_use++;
		return 0;
	}
	if (!perf_map_mark_is_current(s->dir_fd, name, &undo.mark_file))
		return 0;
	int r = perf_map_mark_read(fd, &undo.mark);

	if (r == -ENODATA)
		return sweep_empty(s, name, fd, &undo.mark_file);
	if (r)
		return 0;
	perf_map_mark_name(undo.mark.ns_pid, right_name);
	if (strcmp(name, right_name) || undo_find(s, &undo.mark, &undo.pid) ||
	    !sweep_trusts(s->dir_fd, fd, &undo.mark, undo.pid))
		return 0;
	return sweep_undo(s, &undo);
}

void perf_map_sweep_mark(struct opener *o, int dir_fd, uid_t uid, const char *name,
			 uint64_t deadline_ns, struct perf_map_sweep_counts *ret_swept)
{
	struct undo_sweep s = {.o = o, .dir_fd = dir_fd, .uid = uid, .deadline_ns = deadline_ns};

	(void)sweep_mark(&s, name);
	*ret_swept = s.swept;
}

int perf_map_sweep(struct opener *o, pid_t pid, uint64_t deadline_ns,
		   struct perf_map_unresponsive *silent, struct perf_map_sweep_counts *ret_swept)
{
	struct undo_sweep s = {.o = o, .deadline_ns = deadline_ns, .silent = silent};
	struct opener_process process;
	AUTO_CLOSE int dir_fd = -1;
	char dir[PATH_MAX];
	int r = opener_pin(o, pid);

	if (!r)
		r = perf_map_dir(pid, dir, sizeof(dir));
	if (!r)
		r = target_dir_open(o, pid, dir, &dir_fd);
	if (!r)
		r = opener_process(o, pid, &process);
	if (r)
		return r;
	s.dir_fd = dir_fd;
	s.uid = process.uid;
	r = target_dir_each(dir_fd, PERF_MAP_MARK_SUFFIX, sweep_mark, &s);
	*ret_swept = s.swept;
	return r == -ETIMEDOUT ? 0 : r;
}
