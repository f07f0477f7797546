#include "sampler/offcpu/blocked.h"

#include "base/cleanup.h"
#include "container/memory.h"
#include "container/proc.h"
#include "sampler/offcpu/schedstat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKED_TEXT 256 /* /proc/TID/syscall: at most nine numbers of 18 characters */
#define BLOCKED_PATH 4096

/* Parses " 0xHEX". 0 or -EBADMSG. */
static int next_number(const char **at, uint64_t *ret_number)
{
	char *end;

	if (strncmp(*at, " 0x", 3) != 0 || !strspn(*at + 3, "0123456789abcdef"))
		return -EBADMSG;
	errno = 0;
	*ret_number = strtoull(*at + 3, &end, 16);
	*at = end;
	return errno ? -EBADMSG : 0;
}

/* Text of a thread that runs: "running"; that waits for a page: "-1 SP IP"; in a system call:
 * "NUMBER ARGUMENT*6 SP IP". */
int blocked_parse(const char *text, struct blocked_stack *ret_stack)
{
	uint64_t v[8];
	const char *at = text + (text[0] == '-');
	size_t n = text[0] == '-' ? 2 : 8, digits = strspn(at, "0123456789");

	if (!strcmp(text, "running\n"))
		return -EAGAIN;
	if (!digits || digits > 10)
		return -EBADMSG;
	at += digits;
	for (size_t i = 0; i < n; i++)
		if (next_number(&at, &v[i]))
			return -EBADMSG;
	if (strcmp(at, "\n") != 0)
		return -EBADMSG;
	if (!v[n - 2] || !v[n - 1])
		return -EAGAIN; /* kernel threads have no user registers */
	*ret_stack =
		(struct blocked_stack){.syscall = text[0] == '-' ? -1 : strtoll(text, NULL, 10),
				       .sp = v[n - 2],
				       .ip = v[n - 1]};
	return 0;
}

static void path_of(const char *proc, pid_t tid, const char *name, char path[BLOCKED_PATH])
{
	snprintf(path, BLOCKED_PATH, "%s/%d/%s", proc ? proc : "/proc", tid, name);
}

int blocked_count(const char *proc, pid_t tid, uint64_t *ret_count)
{
	char path[BLOCKED_PATH], text[BLOCKED_TEXT];
	struct schedstat stat;

	path_of(proc, tid, "schedstat", path);
	AUTO_CLOSE int fd = -1;
	int r = proc_open_path(tid, path, &fd);

	/* The kernel always answers this read. */
	ssize_t len = r ? 0 : read(fd, text, sizeof(text) - 1);

	text[len > 0 ? len : 0] = 0;
	if (!r)
		r = len < 0 ? -errno : schedstat_parse(text, &stat);

	if (!r)
		*ret_count = stat.count;
	return r;
}

int blocked_read(const char *proc, pid_t tid, uint64_t count, void *stack, size_t bytes,
		 struct blocked_stack *ret_stack)
{
	struct blocked_stack w = {0};
	char path[BLOCKED_PATH], text[BLOCKED_TEXT];
	uint64_t now;

	path_of(proc, tid, "syscall", path);
	ssize_t len = proc_read_path(tid, path, text, sizeof(text));
	int r = len < 0 ? (int)len : 0;

	if (!r)
		r = blocked_parse(text, &w);
	if (!r)
		r = memory_read_start(tid, w.sp, stack, bytes, &w.bytes);
	if (!r)
		r = blocked_count(proc, tid, &now);
	if (!r && now != count)
		r = -ESTALE;
	if (!r)
		*ret_stack = w;
	return r;
}

int blocked_parse_auxv(const void *auxv, size_t len, bool *ret_is_32)
{
	size_t word = proc_auxv_word(auxv, len);

	if (!word)
		return -EBADMSG;
	*ret_is_32 = word == 4;
	return 0;
}

int blocked_is_32(const char *proc, pid_t pid, bool *ret_is_32)
{
	char path[BLOCKED_PATH], auxv[PROC_START_BYTES];

	path_of(proc, pid, "auxv", path);
	ssize_t len = proc_read_path(pid, path, auxv, sizeof(auxv));

	return len < 0 ? (int)len : blocked_parse_auxv(auxv, (size_t)len, ret_is_32);
}
