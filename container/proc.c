#include "container/proc.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "container/proc_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROC_PATH_BYTES 96
#define PROC_PF_KTHREAD 0x00200000 /* linux/sched.h; in field 9 of stat since Linux 2.6.27 */

int proc_each_numeric_name(const char *dir_path, int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	DIR *dir = opendir(dir_path);
	int r = 0;

	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!r) {
		uint64_t pid;

		errno = 0;
		struct dirent *e = readdir(dir);

		if (!e) {
			r = errno == ENOENT ? -ESRCH : -errno;
			break;
		}
		const char *p = e->d_name;

		if (proc_number(&p, 10, &pid) && !*p && pid && pid <= INT32_MAX)
			r = fn(ctx, (pid_t)pid);
	}
	closedir(dir);
	return r;
}

int proc_each_pid(int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	return proc_each_numeric_name("/proc", fn, ctx);
}

int proc_each_thread(pid_t pid, int (*fn)(void *ctx, pid_t tid), void *ctx)
{
	char path[PROC_PATH_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return proc_each_numeric_name(path, fn, ctx);
}

int proc_read(pid_t pid, pid_t tid, const char *name, size_t max_bytes, char **ret_text,
	      size_t *ret_len)
{
	char path[PROC_PATH_BYTES];

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : file_read_fd(fd, max_bytes, ret_text, ret_len);

	if (r != -ENOENT)
		return r;
	*strrchr(path, '/') = 0;
	return access(path, F_OK) ? -ESRCH : -ENOENT;
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
