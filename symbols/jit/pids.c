#include "symbols/jit/pids.h"

#include "container/proc.h"
#include "symbols/jit/methods_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

void jit_pids_free(struct jit_pids *pids)
{
	hashmap_free(&pids->captured);
	hashmap_free(&pids->live);
	*pids = (struct jit_pids){0};
}

static int pids_add(struct hashmap *set, int32_t pid)
{
	return hashmap_put(set, (uint32_t)pid, 1);
}

static int pids_add_captured(void *ctx, int dir_fd, const char *name, pid_t pid)
{
	struct jit_pids *pids = ctx;

	(void)dir_fd;
	(void)name;
	return pids_add(&pids->captured, pid);
}

static int pids_add_live(void *ctx, pid_t pid)
{
	struct jit_pids *pids = ctx;

	return pids_add(&pids->live, pid);
}

/* Adds the PIDs in the names of perf maps. */
static int pids_add_perfmaps(struct jit_pids *pids)
{
	DIR *dir = opendir("/tmp");
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!r && (errno = 0, e = readdir(dir))) {
		long pid;
		int end = 0;

		if (sscanf(e->d_name, "perf-%10ld.map%n", &pid, &end) == 1 && end &&
		    !e->d_name[end])
			r = pids_add(&pids->live, (int32_t)pid);
	}
	if (!r)
		r = -errno;
	closedir(dir);
	return r;
}

static enum jit_pids_list pids_list_of(int error)
{
	return error ? JIT_PIDS_UNREADABLE : JIT_PIDS_READ;
}

bool jit_pids_is_captured(struct jit_pids *pids, int dir_fd, int32_t pid)
{
	if (pids->captures == JIT_PIDS_UNREAD)
		pids->captures =
			pids_list_of(jit_methods_each_file(dir_fd, pids_add_captured, pids));
	if (pids->captures == JIT_PIDS_READ && !hashmap_get(&pids->captured, (uint32_t)pid))
		return false;
	return jit_methods_has_file(dir_fd, pid);
}

/* Whether a process, even after its end, is pinned with a perf map that our /tmp does not show. */
static bool pids_is_elsewhere(const struct jit_pids *pids, int32_t pid)
{
	struct opener_process process;

	return pids->opener && !opener_process(pids->opener, pid, &process) &&
	       (process.other_root || process.ns_pid != pid);
}

bool jit_pids_may_have_perfmap(struct jit_pids *pids, int32_t pid)
{
	if (pids->lives == JIT_PIDS_UNREAD) {
		if (pids->unlisted++ < JIT_PIDS_UNLISTED)
			return true;
		int r = proc_each_pid(pids_add_live, pids);

		pids->lives = pids_list_of(r ? r : pids_add_perfmaps(pids));
	}
	return pids->lives == JIT_PIDS_UNREADABLE || hashmap_get(&pids->live, (uint32_t)pid) ||
	       pids_is_elsewhere(pids, pid);
}
