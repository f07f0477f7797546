#include "symbols/jit/pids.h"

#include "container/ask.h"
#include "container/proc.h"
#include "symbols/jit/methods_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Entries of /tmp. Another process reads them, because a target may keep the directory locked. */
struct pids_tmp {
	int fd; /* -1: not open yet */
	int len;
	_Alignas(struct dirent64) char entries[ASK_BYTES - 16];
};

static int pids_ask_tmp(void *state)
{
	struct pids_tmp *t = state;

	if (t->fd < 0)
		t->fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t->len = t->fd < 0 ? -1 : (int)getdents64(t->fd, t->entries, sizeof(t->entries));
	return t->len < 0 ? -errno : 0;
}

static void pids_drop_tmp(void *state)
{
	const struct pids_tmp *t = state;

	if (t->fd >= 0)
		close(t->fd);
}

static int pids_add_perfmap(struct jit_pids *pids, const char *name)
{
	long pid;
	int end = 0;

	if (sscanf(name, "perf-%10ld.map%n", &pid, &end) != 1 || !end || name[end])
		return 0;
	return pids_add(&pids->live, (int32_t)pid);
}

/* Adds the PIDs in the names of perf maps. Asks for the process pid. */
static int pids_add_perfmaps(struct jit_pids *pids, int32_t pid)
{
	struct pids_tmp t = {.fd = -1};
	int r;

	do {
		r = ask(pid, pids_ask_tmp, pids_drop_tmp, &t, sizeof(t));
		if (r == -ETIME)
			return r;
		for (int at = 0; !r && at < t.len;) {
			const struct dirent64 *e = (const void *)(t.entries + at);

			r = pids_add_perfmap(pids, e->d_name);
			at += e->d_reclen;
		}
	} while (!r && t.len);
	pids_drop_tmp(&t);
	return r == -ENOENT ? 0 : r;
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

		pids->lives = pids_list_of(r ? r : pids_add_perfmaps(pids, pid));
	}
	return pids->lives == JIT_PIDS_UNREADABLE || hashmap_get(&pids->live, (uint32_t)pid) ||
	       pids_is_elsewhere(pids, pid);
}
