/* Which processes can be profiled here, and which one is meant where nobody said. */
#ifndef CONTAINER_TARGETS_H
#define CONTAINER_TARGETS_H

#include "container/access.h"
#include "container/dotnet.h"
#include "container/proc.h"

struct target {
	pid_t pid, ppid, ns_pid; /* ns_pid: in its own PID namespace */
	uid_t uid; /* effective */
	bool other_root; /* its files, and the names of its users, are not ours */
	bool denied; /* whether it is .NET could not be told: we may not look into it */
	struct dotnet_runtime dotnet;
	char comm[PROC_COMM_BYTES]; /* program name, never arguments */
	char container[PROC_CONTAINER_BYTES]; /* empty: none seen */
};

#define TARGETS_DENIED_NAMED 3 /* of each reason so many are named, the rest are counted */

/* Processes that could not be looked into. */
struct targets_denied {
	size_t count; /* all reasons together */
	struct {
		size_t count;
		pid_t pids[TARGETS_DENIED_NAMED]; /* the first ones */
	} by[ACCESS_REASONS];
};

struct target_list {
	struct target *v; /* by pid; freed by target_list_free */
	size_t len, cap;
	struct targets_denied denied;
};

/* "40 belong to other users (PID 1, 7, 12 and 37 more), 1 holds capabilities that we lack (PID 80)": at most
 * TARGETS_DENIED_BYTES. */
#define TARGETS_DENIED_BYTES 512
void targets_denied_text(const struct targets_denied *denied, char *buf, size_t cap);

/* Whether CAP_SYS_PTRACE would let us look into more. */
bool targets_want_ptrace(const struct targets_denied *denied);

/*
 * All processes in sight but kernel threads, zombies and ourselves; with dotnet_only those that run .NET. Processes that end
 * meanwhile are left out. 0, -ENOMEM, or -errno of reading /proc; the list is empty then.
 */
int targets_list(struct opener *o, bool dotnet_only, struct target_list *ret_list);
void target_list_free(struct target_list *list);

enum target_choice {
	TARGET_ONLY, /* the only .NET process in sight */
	TARGET_SEVERAL, /* more than one: the user must say which */
	TARGET_PID1, /* no .NET process: PID 1 */
};

/*
 * The target where the user named none. list: what targets_list with dotnet_only gave. *ret_pid is filled but for
 * TARGET_SEVERAL.
 */
enum target_choice targets_choose(const struct target_list *list, pid_t *ret_pid);

/* Both at once: *ret_list (freed by the caller) holds the .NET processes. 0 or errors of targets_list. */
int targets_dotnet(struct opener *o, struct target_list *ret_list, enum target_choice *ret_choice, pid_t *ret_pid);

#endif
