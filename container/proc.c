#include "container/proc.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "container/memory_left.h"
#include "container/proc_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROC_PATH_BYTES 96
#define PROC_MAPS_SMALL ((size_t)4 << 20) /* bytes of maps that always fit into memory */
#define PROC_MAPS_MAX ((size_t)256 << 20)
#define PROC_MAPS_PART 8 /* of the memory that is left, at most, for a larger text */
#define PROC_WORD_BYTES 255
#define PROC_SEARCH_BYTES 16384
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

int proc_read(pid_t pid, pid_t tid, const char *name, size_t max_bytes, char **ret_text,
	      size_t *ret_len)
{
	int r;
	AUTO_CLOSE int fd = proc_open(pid, tid, name, &r);

	if (!r)
		r = file_read_fd(fd, max_bytes, ret_text, ret_len);
	return proc_error(pid, tid, r);
}

int proc_read_maps(pid_t pid, char **ret_text)
{
	size_t len;
	int r = proc_read(pid, 0, "maps", PROC_MAPS_SMALL, ret_text, &len);

	if (r != -E2BIG)
		return r;
	uint64_t max = memory_left() / PROC_MAPS_PART;

	return proc_read(pid, 0, "maps", max < PROC_MAPS_MAX ? (size_t)max : PROC_MAPS_MAX,
			 ret_text, &len);
}

int proc_search_maps(pid_t pid, const char *const words[], size_t n, uint32_t *ret_found)
{
	char text[PROC_SEARCH_BYTES];
	uint32_t found = 0;
	size_t kept = 0;
	int r;
	AUTO_CLOSE int fd = proc_open(pid, 0, "maps", &r);

	while (!r) {
		ssize_t got = read(fd, text + kept, sizeof(text) - kept);

		if (got < 0 && errno == EINTR)
			continue;
		r = got < 0 ? -errno : 0;
		if (got <= 0)
			break;
		size_t len = kept + (size_t)got;

		for (size_t i = 0; i < n; i++)
			if (memmem(text, len, words[i], strlen(words[i])))
				found |= (uint32_t)1 << i;
		/* A word may continue in the next piece. */
		kept = len < PROC_WORD_BYTES ? len : PROC_WORD_BYTES;
		memmove(text, text + len - kept, kept);
	}
	if (!r)
		*ret_found = found;
	return proc_error(pid, 0, r);
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
