#include "container/memory_left.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_FILE_MAX ((size_t)64 << 10)
#define KIB 1024

/* A hierarchy of control groups, below the directory of all of them. */
struct hierarchy {
	const char *const *dirs;  /* where it may be mounted; NULL ends the list */
	const char *limit, *used; /* files */
	const char *droppable[2]; /* keys of memory.stat: cached files */
	const char *slab;         /* and entries of /proc and such; NULL: not known */
};

static const char *const unified_dirs[] = {"", "/unified", NULL};
static const char *const memory_dirs[] = {"/memory", NULL};
static const struct hierarchy unified = {unified_dirs,
					 "memory.max",
					 "memory.current",
					 {"inactive_file", "active_file"},
					 "slab_reclaimable"};
static const struct hierarchy version1 = {memory_dirs,
					  "memory.limit_in_bytes",
					  "memory.usage_in_bytes",
					  {"total_inactive_file", "total_active_file"},
					  NULL};

/* The text of a file, which the caller frees; NULL: it cannot be read. */
static char *read_text(const char *dir, const char *name)
{
	char path[PATH_MAX];
	char *text;
	size_t len;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path) ||
	    file_read_at(AT_FDCWD, path, MEMORY_FILE_MAX, &text, &len))
		return NULL;
	return text;
}

static bool read_number(const char *dir, const char *name, uint64_t *ret_value)
{
	AUTO_FREE char *text = read_text(dir, name);
	char *end;

	if (!text)
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	/* "max" is no number. */
	if (errno || end == text)
		return false;
	*ret_value = value;
	return true;
}

/* The number after a key at the start of a line; `none` without the key. text may be NULL. */
static uint64_t number_of(const char *text, const char *key, uint64_t none)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, key, len) && strchr(": \t", text[len]))
			return strtoull(text + len + 1, NULL, 10);
	}
	return none;
}

/* The bytes that one group's own limit leaves. */
static uint64_t left_in_group(const struct hierarchy *h, const char *dir)
{
	AUTO_FREE char *stat = NULL;
	uint64_t limit, used;

	if (!read_number(dir, h->limit, &limit) || !read_number(dir, h->used, &used))
		return UINT64_MAX;
	stat = read_text(dir, "memory.stat");
	uint64_t droppable =
		number_of(stat, h->droppable[0], 0) + number_of(stat, h->droppable[1], 0);

	/* The kernel counts at least half of it as available (MemAvailable). */
	droppable += h->slab ? number_of(stat, h->slab, 0) / 2 : 0;
	used -= droppable < used ? droppable : used;
	return limit > used ? limit - used : 0;
}

/*
 * The bytes that a group and those above it leave. A container may see its own group as the top, or
 * a path that exists only outside. Levels that are not here are left out.
 */
static uint64_t left_in_groups(const struct hierarchy *h, const char *cgroup_dir, const char *path)
{
	uint64_t left = UINT64_MAX;
	char dir[PATH_MAX];

	for (size_t i = 0; h->dirs[i]; i++) {
		int top = snprintf(dir, sizeof(dir), "%s%s", cgroup_dir, h->dirs[i]);
		int n = snprintf(dir, sizeof(dir), "%s%s%s", cgroup_dir, h->dirs[i], path);

		if (n >= (int)sizeof(dir))
			continue;
		for (;;) {
			uint64_t here = left_in_group(h, dir);
			char *slash = strrchr(dir, '/');

			left = here < left ? here : left;
			if (!slash || slash - dir < top)
				break;
			*slash = '\0';
		}
	}
	return left;
}

/* Whether a list "a,b,c" of len bytes has the word "memory". */
static bool has_memory(const char *list, size_t len)
{
	static const char word[] = "memory";
	const size_t n = sizeof(word) - 1;

	for (const char *end = list + len; list < end; list += strcspn(list, ",:") + 1)
		if (!strncmp(list, word, n) && (list[n] == ',' || list[n] == ':'))
			return true;
	return false;
}

uint64_t memory_left_in(const char *proc_dir, const char *cgroup_dir)
{
	AUTO_FREE char *meminfo = read_text(proc_dir, "meminfo");
	AUTO_FREE char *groups = read_text(proc_dir, "self/cgroup");
	uint64_t kib = number_of(meminfo, "MemAvailable", UINT64_MAX),
		 left = kib < UINT64_MAX / KIB ? kib * KIB : UINT64_MAX;

	/* "ID:CONTROLLERS:PATH"; version 2 has no controllers here. */
	for (char *line = groups, *next; line && *line; line = next) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (!path || path >= next)
			continue;
		list++;
		if (path == list || has_memory(list, (size_t)(path - list))) {
			uint64_t here = left_in_groups(path == list ? &unified : &version1,
						       cgroup_dir, path + 1);

			left = here < left ? here : left;
		}
	}
	return left;
}

uint64_t memory_left(void)
{
	return memory_left_in("/proc", "/sys/fs/cgroup");
}

uint64_t memory_taken(void)
{
	AUTO_FREE char *text = read_text("/proc/self", "statm");
	uint64_t resident = 0, shared = 0;

	if (!text || sscanf(text, "%*u %" SCNu64 " %" SCNu64, &resident, &shared) != 2)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

size_t memory_left_eighth(uint64_t left, size_t most)
{
	uint64_t part = (left ? left : memory_left()) / 8;

	return part < most ? (size_t)part : most;
}
