/* Lists the processes that can be profiled, and chooses the target if the user named none. */
#ifndef CONTAINER_TARGETS_H
#define CONTAINER_TARGETS_H

#include "container/access.h"
#include "container/cgroup.h"
#include "container/dotnet.h"
#include "container/proc.h"

struct target {
	pid_t pid, ppid, ns_pid; /* ns_pid: in its innermost PID namespace */
	uid_t uid;               /* effective */
	bool other_root;         /* its root is not ours, nor are its user names */
	bool denied;             /* access denied, so unknown whether it is .NET */
	struct dotnet_runtime dotnet;
	char comm[PROC_COMM_BYTES];             /* program name, without arguments */
	char container[CGROUP_CONTAINER_BYTES]; /* empty: none found */
};

#define TARGETS_DENIED_NAMED 3 /* PIDs kept for each reason; the rest are counted */

/* Processes that denied access. */
struct targets_denied {
	size_t count; /* all reasons together */
	struct {
		size_t count;
		pid_t pids[TARGETS_DENIED_NAMED]; /* the first ones */
	} by[ACCESS_REASONS];
};

struct target_list {
	struct target *v; /* sorted by pid; target_list_free frees it */
	size_t len, cap;
	struct targets_denied denied;
};

/*
 * Writes a summary, at most TARGETS_DENIED_BYTES: "40 belong to other users (PID 1, 7, 12 and 37
 * more), 1 holds capabilities that we lack (PID 80)".
 */
#define TARGETS_DENIED_BYTES 512
void targets_denied_text(const struct targets_denied *denied, char *buf, size_t cap);

/* Returns whether CAP_SYS_PTRACE would give access to more of them. */
bool targets_need_ptrace(const struct targets_denied *denied);

/*
 * Lists all visible processes except kernel threads, zombies and this process; with dotnet_only,
 * only those with .NET. Omits processes that end meanwhile. 0, -ENOMEM, or -errno of reading /proc;
 * after an error the list is empty.
 */
int targets_list(struct opener *o, bool dotnet_only, struct target_list *ret_list);
void target_list_free(struct target_list *list);

enum target_choice {
	TARGET_ONLY,    /* the only visible .NET process */
	TARGET_SEVERAL, /* several .NET processes: the user must choose */
	TARGET_PID1,    /* no .NET process: PID 1 */
};

/*
 * Chooses the target if the user named none. list: from targets_list with dotnet_only. *ret_pid is
 * filled except for TARGET_SEVERAL.
 */
enum target_choice targets_choose(const struct target_list *list, pid_t *ret_pid);

/*
 * Lists the .NET processes and chooses the target. The caller frees *ret_list. 0 or errors of
 * targets_list.
 */
int targets_dotnet(struct opener *o, struct target_list *ret_list, enum target_choice *ret_choice,
		   pid_t *ret_pid);

#endif
