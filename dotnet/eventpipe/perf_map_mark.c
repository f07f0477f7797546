#include "dotnet/eventpipe/perf_map_mark.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_HEAD "profcpu switched this perf map on and will remove it\n"
#define MARK_NUMBERS 8

void perf_map_name(pid_t ns_pid, char *buf)
{
	snprintf(buf, PERF_MAP_NAME_BYTES, "perf-%d.map", ns_pid);
}

void perf_map_info_name(pid_t ns_pid, char *buf)
{
	snprintf(buf, PERF_MAP_NAME_BYTES, "perfinfo-%d.map", ns_pid);
}

void perf_map_mark_name(pid_t ns_pid, char *buf)
{
	snprintf(buf, PERF_MAP_NAME_BYTES, "perf-%d" PERF_MAP_MARK_SUFFIX, ns_pid);
}

size_t perf_map_mark_text(const struct perf_map_mark *mark, char *buf, size_t cap)
{
	int n = snprintf(buf, cap,
			 MARK_HEAD "%10d %20" PRIu64 " %20" PRIu64 " %10d %20" PRIu64 " %20" PRIu64
				   " %20" PRIu64 " %20" PRIu64 "\n",
			 mark->ns_pid, mark->start_ticks, mark->pid_ns, mark->pid, mark->map.dev,
			 mark->map.ino, mark->info.dev, mark->info.ino);

	return n < 0 || (size_t)n >= cap ? 0 : (size_t)n;
}

int perf_map_mark_parse(const char *text, size_t len, struct perf_map_mark *ret_mark)
{
	uint64_t x[MARK_NUMBERS];
	char copy[PERF_MAP_MARK_MAX + 1], *p = copy;

	if (!len)
		return -ENODATA;
	if (len > PERF_MAP_MARK_MAX || len < strlen(MARK_HEAD) ||
	    memcmp(text, MARK_HEAD, strlen(MARK_HEAD)))
		return -EBADMSG;
	memcpy(copy, text, len);
	copy[len] = 0;
	p += strlen(MARK_HEAD);
	for (int i = 0; i < MARK_NUMBERS; i++) {
		p += strspn(p, " ");
		if (*p < '0' || *p > '9')
			return -EBADMSG;
		errno = 0;
		x[i] = strtoull(p, &p, 10);
		if (errno)
			return -EBADMSG;
	}
	if (*p != '\n' || p + 1 != copy + len || !x[0] || x[0] > INT32_MAX || !x[3] ||
	    x[3] > INT32_MAX)
		return -EBADMSG;
	*ret_mark = (struct perf_map_mark){
		.ns_pid = (pid_t)x[0],
		.start_ticks = x[1],
		.pid_ns = x[2],
		.pid = (pid_t)x[3],
		.map = {.dev = x[4], .ino = x[5]},
		.info = {.dev = x[6], .ino = x[7]},
	};
	return 0;
}

uint64_t perf_map_own_pid_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

int perf_map_mark_open(int dir_fd, const char *name, uid_t target_uid, int *ret_fd,
		       struct target_file *ret_file)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = target_dir_open_file(dir_fd, name, &fd, &st);

	if (r)
		return r;
	if (!st.st_nlink)
		return -ENOENT;
	if (st.st_nlink > 1 || (st.st_uid && st.st_uid != geteuid() && st.st_uid != target_uid))
		return -EBADMSG;
	*ret_file = (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int perf_map_mark_read(int fd, struct perf_map_mark *ret_mark)
{
	char text[PERF_MAP_MARK_MAX + 1];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	return n < 0 ? -errno : perf_map_mark_parse(text, (size_t)n, ret_mark);
}

int perf_map_mark_lock(int fd, bool exclusive)
{
	while (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB))
		if (errno != EINTR)
			return -errno;
	return 0;
}

bool perf_map_mark_is_current(int dir_fd, const char *name, const struct target_file *file)
{
	struct stat st;

	return !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == file->dev &&
	       st.st_ino == file->ino;
}
