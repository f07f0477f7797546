#include "sampler/targets.h"

#include "container/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TARGETS_PATH 256
#define TARGETS_STAT 512 /* first bytes of /proc/PID/task/TID/stat: name, state, parent */

int targets_new(struct targets *ret_targets)
{
	struct targets t = {0};
	int r = pidset_new(&t.pids);

	if (!r)
		*ret_targets = t;
	return r;
}

void targets_free(struct targets *t)
{
	pidset_free(&t->pids);
	vec_free(&t->list);
}

int targets_add(struct targets *t, pid_t pid)
{
	return pidset_add(&t->pids, pid) ? vec_push(&t->list, pid) : 0;
}

int targets_tgid(pid_t pid, const char *proc, pid_t *ret_tgid)
{
	char path[TARGETS_PATH], text[PROC_START_BYTES];

	snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
	ssize_t len = pid > 0 ? proc_read_path(pid, path, text, sizeof(text)) : -ESRCH;

	if (len < 0)
		return len == -ENOENT ? -ESRCH : (int)len;
	const char *line = strstr(text, "\nTgid:");

	*ret_tgid = line ? (pid_t)strtol(line + 6, NULL, 10) : pid;
	return 0;
}

struct family {
	pid_t pid, parent;
};

struct families {
	struct family *v;
	size_t len, cap;
	const char *proc;
};

/* Adds a process with its parent. Ignores a process that has ended. */
static int add_family(void *ctx, pid_t pid)
{
	struct families *all = ctx;
	char path[TARGETS_PATH], text[TARGETS_STAT];

	/* Read task/PID/stat, because PID/stat adds up all threads, which is slow with thousands.
	 */
	snprintf(path, sizeof(path), "%s/%d/task/%d/stat", all->proc, pid, pid);
	if (proc_read_path(pid, path, text, sizeof(text)) <= 0)
		return 0;
	const char *name_end = strrchr(text, ')');
	int parent;

	if (!name_end || sscanf(name_end + 1, " %*c %d", &parent) != 1)
		return 0;
	return vec_push(all, ((struct family){pid, parent}));
}

int targets_add_children(struct targets *t, const char *proc)
{
	struct families all = {.proc = proc};
	int r = proc_each_numeric_name(0, proc, add_family, &all);

	/* Children mostly have higher ids than their parents, so the first pass finds nearly all.
	 */
	for (bool grown = true; !r && grown;) {
		grown = false;
		for (size_t i = 0; !r && i < all.len; i++) {
			if (!pidset_has(&t->pids, all.v[i].parent) ||
			    pidset_has(&t->pids, all.v[i].pid))
				continue;
			r = targets_add(t, all.v[i].pid);
			grown = true;
		}
	}
	vec_free(&all);
	return r;
}

struct thread_list {
	struct target_threads *threads;
	pid_t pid; /* 0: the numbers are process ids */
};

static int add_thread(void *ctx, pid_t tid)
{
	struct thread_list *list = ctx;

	return vec_push(list->threads, ((struct target_thread){list->pid ? list->pid : tid, tid}));
}

int targets_threads(pid_t pid, const char *proc, struct target_threads *threads)
{
	struct thread_list list = {threads, pid};
	char path[TARGETS_PATH];

	snprintf(path, sizeof(path), "%s/%d/task", proc, pid);
	return proc_each_numeric_name(pid, path, add_thread, &list);
}

int targets_all(const char *proc, struct target_threads *processes)
{
	struct thread_list list = {processes, 0};

	return proc_each_numeric_name(0, proc, add_thread, &list);
}
