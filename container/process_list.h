/* Lists the processes that can be profiled, and chooses the target if the user named none. */
#ifndef CONTAINER_PROCESS_LIST_H
#define CONTAINER_PROCESS_LIST_H

#include "container/access.h"
#include "container/cgroup.h"
#include "container/dotnet_process.h"
#include "container/proc.h"

struct process_entry {
	pid_t pid, ppid, ns_pid; /* ns_pid: in its innermost PID namespace */
	uid_t uid;               /* effective */
	bool other_root;         /* its root is not ours, nor are its user names */
	bool denied;             /* not inspected, so unknown whether it is .NET */
	struct dotnet_runtime dotnet;
	char comm[PROC_COMM_BYTES];             /* program name, without arguments */
	char container[CGROUP_CONTAINER_BYTES]; /* empty: none found */
};

#define PROCESS_LIST_DENIED_NAMED 3 /* PIDs kept for each reason; the rest are counted */

/* Reasons why a process is not inspected: that it denies access, and two more. */
enum { PROCESS_LIST_LONG_MAPS = ACCESS_REASONS, PROCESS_LIST_SILENT, PROCESS_LIST_REASONS };

/* Processes that are not inspected. */
struct process_list_denied {
	size_t count; /* all reasons together */
	struct {
		size_t count;
		pid_t pids[PROCESS_LIST_DENIED_NAMED]; /* the first ones */
	} by[PROCESS_LIST_REASONS];
};

struct process_list {
	struct process_entry *v; /* sorted by pid; process_list_free frees it */
	size_t len, cap;
	struct process_list_denied denied;
};

/*
 * Writes a summary, at most PROCESS_LIST_DENIED_BYTES: "40 belong to other users (PID 1, 7, 12 and
 * 37 more), 1 holds capabilities that we lack (PID 80)".
 */
#define PROCESS_LIST_DENIED_BYTES 768
void process_list_denied_text(const struct process_list_denied *denied, char *buf, size_t cap);

/* Returns whether CAP_SYS_PTRACE would give access to more of them. */
bool process_list_need_ptrace(const struct process_list_denied *denied);

/*
 * Lists all visible processes except kernel threads, zombies and this process; with dotnet_only,
 * only those with .NET. Omits processes that end meanwhile. 0, -ENOMEM, or -errno of reading /proc;
 * after an error the list is empty.
 */
int process_list_load(struct opener *o, bool dotnet_only, struct process_list *ret_list);
void process_list_free(struct process_list *list);

enum process_list_choice {
	PROCESS_LIST_ONLY,    /* the only visible .NET process */
	PROCESS_LIST_SEVERAL, /* several .NET processes: the user must choose */
	PROCESS_LIST_PID1,    /* no .NET process: PID 1 */
};

/*
 * Chooses the target if the user named none. list: from process_list_load with dotnet_only.
 * *ret_pid is filled except for PROCESS_LIST_SEVERAL.
 */
enum process_list_choice process_list_choose(const struct process_list *list, pid_t *ret_pid);

/*
 * Lists the .NET processes and chooses the target. The caller frees *ret_list. 0 or errors of
 * process_list_load.
 */
int process_list_dotnet(struct opener *o, struct process_list *ret_list,
			enum process_list_choice *ret_choice, pid_t *ret_pid);

#endif
