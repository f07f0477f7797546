#include "sampler/cpulist.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CPULIST_FILE_MAX 65536

/* Reads the next range at *cursor. 1; 0 at the end; -EBADMSG. */
static int next_range(const char **cursor, int *first, int *last)
{
	const char *p = *cursor;
	char *end;

	while (*p == ',' || isspace((unsigned char)*p))
		p++;
	*cursor = p;
	if (!*p)
		return 0;
	if (!isdigit((unsigned char)*p))
		return -EBADMSG;
	unsigned long a = strtoul(p, &end, 10), b = a;

	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return -EBADMSG;
		b = strtoul(end + 1, &end, 10);
	}
	if (a > b || b > CPULIST_CPU_MAX)
		return -EBADMSG;
	*first = (int)a;
	*last = (int)b;
	*cursor = end;
	return 1;
}

int cpulist_parse(const char *text, int **ret_cpus, size_t *ret_n)
{
	VEC(int) cpus = {0};
	int first, last, r;

	while ((r = next_range(&text, &first, &last)) > 0)
		for (int cpu = first; cpu <= last; cpu++)
			if (vec_push(&cpus, cpu)) {
				vec_free(&cpus);
				return -ENOMEM;
			}
	if (r < 0 || !cpus.len) {
		vec_free(&cpus);
		return -EBADMSG;
	}
	*ret_cpus = cpus.v;
	*ret_n = cpus.len;
	return 0;
}

bool cpulist_has(const char *text, int cpu)
{
	int first, last;

	while (next_range(&text, &first, &last) > 0)
		if (cpu >= first && cpu <= last)
			return true;
	return false;
}

static int online_by_count(int **ret_cpus, size_t *ret_n)
{
	char text[32];
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	snprintf(text, sizeof(text), "0-%ld", n > 0 ? n - 1 : 0);
	return cpulist_parse(text, ret_cpus, ret_n);
}

static int open_online(const char *sysfs, int *ret_fd)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/devices/system/cpu/online",
			 sysfs ? sysfs : "/sys");

	return n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG
						  : file_open_regular(AT_FDCWD, path, ret_fd);
}

static int read_online(const char *sysfs, char **ret_text)
{
	AUTO_CLOSE int fd = -1;
	size_t len;
	int r = open_online(sysfs, &fd);

	return r ? r : file_read_fd(fd, CPULIST_FILE_MAX, ret_text, &len);
}

/* Makes one system call if nothing changed, because a recording calls this often. */
int cpulist_changed(struct cpulist_online *last, const char *sysfs, int **ret_cpus, size_t *ret_n)
{
	char text[sizeof(last->text)];
	int r;

	if (!last->opened && (r = open_online(sysfs, &last->fd)))
		return r;
	last->opened = true;
	ssize_t n = pread(last->fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = 0;
	if (!strcmp(text, last->text))
		return 0;
	/* The list may be truncated and hide a change, so read all of it each time. */
	if ((size_t)n == sizeof(text) - 1) {
		r = cpulist_online(sysfs, ret_cpus, ret_n);
		return r ? r : 1;
	}
	r = cpulist_parse(text, ret_cpus, ret_n);
	if (r)
		return r;
	memcpy(last->text, text, (size_t)n + 1);
	return 1;
}

void cpulist_online_close(struct cpulist_online *last)
{
	if (last->opened)
		close(last->fd);
	*last = (struct cpulist_online){0};
}

int cpulist_online(const char *sysfs, int **ret_cpus, size_t *ret_n)
{
	AUTO_FREE char *text = NULL;

	if (read_online(sysfs, &text))
		return online_by_count(ret_cpus, ret_n);
	return cpulist_parse(text, ret_cpus, ret_n);
}

bool cpulist_is_online(const char *sysfs, int cpu)
{
	AUTO_FREE int *cpus = NULL;
	size_t n;

	if (cpulist_online(sysfs, &cpus, &n))
		return true;
	for (size_t i = 0; i < n; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}
