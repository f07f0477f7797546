#include "container/process_list.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "container/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct process_list_scan {
	struct opener *o;
	struct process_list list;
	bool dotnet_only;
	pid_t self;
	uint64_t long_maps_ns; /* time left for long lists of maps */
};

#define PROCESS_LIST_MAPS_NS (NS_PER_S / 4)
#define PROCESS_LIST_LONG_MAPS_NS (2 * NS_PER_S) /* for all long lists of maps together */

/* Whether a probe failed, but not because the process has ended. */
static bool process_list_error_is_denial(int r)
{
	return r == -EACCES || r == -EPERM || r == -E2BIG || r == -ETIMEDOUT || r == -ETIME;
}

/* Probes a process, and again without haste if its list of maps is long. */
static int process_list_probe(struct process_list_scan *scan, pid_t pid,
			      struct dotnet_runtime *ret_runtime)
{
	uint64_t begin_ns = clock_monotonic_ns();
	struct proc_maps_limit limit = {PROC_MAPS_SMALL, begin_ns + PROCESS_LIST_MAPS_NS};
	int r = dotnet_probe(scan->o, pid, &limit, ret_runtime);

	if ((r != -E2BIG && r != -ETIMEDOUT) || !scan->long_maps_ns)
		return r;
	limit = (struct proc_maps_limit){PROC_MAPS_MAX, begin_ns + scan->long_maps_ns};
	r = dotnet_probe(scan->o, pid, &limit, ret_runtime);
	uint64_t took_ns = clock_monotonic_ns() - begin_ns;

	scan->long_maps_ns -= took_ns < scan->long_maps_ns ? took_ns : scan->long_maps_ns;
	return r;
}

static void process_list_container(pid_t pid, struct process_entry *t)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	if (!proc_read(pid, 0, "cgroup", PROC_FILE_MAX, &text, &len))
		cgroup_container_id(text, t->container, sizeof(t->container));
}

static void process_list_add_denied(struct process_list_denied *denied, pid_t pid, int error)
{
	struct access_denial denial = {.reason = ACCESS_ELSEWHERE};
	int reason = error == -ETIME ? PROCESS_LIST_SILENT : PROCESS_LIST_LONG_MAPS;

	if (error == -EACCES || error == -EPERM) {
		/* A process that has ended meanwhile counts as ACCESS_ELSEWHERE. */
		(void)access_probe(pid, &denial);
		reason = denial.reason;
	}
	size_t n = denied->by[reason].count++;

	denied->count++;
	if (n < PROCESS_LIST_DENIED_NAMED)
		denied->by[reason].pids[n] = pid;
}

/* Writes "PID 1, 7, 12 and 37 more". */
static void process_list_pids_text(const pid_t *pids, size_t n, char *buf, size_t cap)
{
	size_t named = n < PROCESS_LIST_DENIED_NAMED ? n : PROCESS_LIST_DENIED_NAMED;
	size_t len = (size_t)snprintf(buf, cap, "PID ");

	for (size_t i = 0; i < named && len < cap; i++)
		len += (size_t)snprintf(buf + len, cap - len, "%s%d", i ? ", " : "", (int)pids[i]);
	if (n > named && len < cap)
		snprintf(buf + len, cap - len, " and %zu more", n - named);
}

void process_list_denied_text(const struct process_list_denied *denied, char *buf, size_t cap)
{
	static const char *const words[PROCESS_LIST_REASONS][2] = {
		[ACCESS_OTHER_USER] = {"belongs to another user", "belong to other users"},
		[ACCESS_NOT_DUMPABLE] = {"is not dumpable", "are not dumpable"},
		[ACCESS_CAPABILITIES] = {"holds capabilities that we lack",
					 "hold capabilities that we lack"},
		[ACCESS_ELSEWHERE] =
			{"is in another user namespace or guarded by a security module",
			 "are in other user namespaces or guarded by a security module"},
		[PROCESS_LIST_LONG_MAPS] = {"has too many memory maps to read in time",
					    "have too many memory maps to read in time"},
		[PROCESS_LIST_SILENT] = {"does not answer: it " ASK_SILENT_WHY,
					 "do not answer: each " ASK_SILENT_WHY},
	};
	size_t len = 0;

	*buf = 0;
	for (int i = 0; i < PROCESS_LIST_REASONS; i++) {
		size_t n = denied->by[i].count;
		char pids[80];

		if (!n || len >= cap)
			continue;
		process_list_pids_text(denied->by[i].pids, n, pids, sizeof(pids));
		len += (size_t)snprintf(buf + len, cap - len, "%s%zu %s (%s)", len ? ", " : "", n,
					words[i][n > 1], pids);
	}
}

bool process_list_need_ptrace(const struct process_list_denied *denied)
{
	return denied->count > denied->by[ACCESS_ELSEWHERE].count +
				       denied->by[PROCESS_LIST_LONG_MAPS].count +
				       denied->by[PROCESS_LIST_SILENT].count;
}

/* Adds one process; skips processes that end meanwhile. */
static int process_list_add(void *ctx, pid_t pid)
{
	struct process_list_scan *scan = ctx;
	struct opener_process pinned;
	struct proc_status status;
	struct process_entry t = {.pid = pid};
	int r = pid == scan->self ? -ESRCH : proc_status(pid, &status);

	if (r == -ETIME)
		process_list_add_denied(&scan->list.denied, pid, r);
	if (r || status.kernel_thread || status.state == 'Z' || status.state == 'X' ||
	    (status.ppid == scan->self && !strcmp(status.comm, ASK_NAME)))
		return r == -ENOMEM ? r : 0;
	r = process_list_probe(scan, pid, &t.dotnet);
	t.denied = process_list_error_is_denial(r);
	if (t.denied)
		process_list_add_denied(&scan->list.denied, pid, r);
	if (r && !t.denied)
		return r == -ENOMEM ? r : 0;
	if (scan->dotnet_only && !t.dotnet.is_dotnet)
		return 0;
	t.ppid = status.ppid;
	t.ns_pid = status.ns_pid;
	t.uid = status.uid;
	memcpy(t.comm, status.comm, sizeof(t.comm));
	process_list_container(pid, &t);
	r = opener_pin(scan->o, pid);
	t.other_root = !opener_process(scan->o, pid, &pinned) && pinned.other_root;
	if (r == -ENOMEM)
		return r;
	return vec_push(&scan->list, t);
}

static int process_list_by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct process_entry *)a)->pid,
	      y = ((const struct process_entry *)b)->pid;

	return (x > y) - (x < y);
}

int process_list_load(struct opener *o, bool dotnet_only, struct process_list *ret_list)
{
	struct process_list_scan scan = {.o = o,
					 .dotnet_only = dotnet_only,
					 .self = getpid(),
					 .long_maps_ns = PROCESS_LIST_LONG_MAPS_NS};
	int r = proc_each_pid(process_list_add, &scan);

	if (r) {
		process_list_free(&scan.list);
		return r;
	}
	if (scan.list.len)
		qsort(scan.list.v, scan.list.len, sizeof(*scan.list.v), process_list_by_pid);
	*ret_list = scan.list;
	return 0;
}

void process_list_free(struct process_list *list)
{
	vec_free(list);
}

enum process_list_choice process_list_choose(const struct process_list *list, pid_t *ret_pid)
{
	const struct process_entry *only = NULL;

	for (size_t i = 0; i < list->len; i++) {
		if (!list->v[i].dotnet.is_dotnet)
			continue;
		if (only)
			return PROCESS_LIST_SEVERAL;
		only = &list->v[i];
	}
	*ret_pid = only ? only->pid : 1;
	return only ? PROCESS_LIST_ONLY : PROCESS_LIST_PID1;
}

int process_list_dotnet(struct opener *o, struct process_list *ret_list,
			enum process_list_choice *ret_choice, pid_t *ret_pid)
{
	int r = process_list_load(o, true, ret_list);

	if (!r)
		*ret_choice = process_list_choose(ret_list, ret_pid);
	return r;
}
