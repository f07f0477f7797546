/*
 * Reasons why the kernel denies access to a process: its files, maps and samples. Source:
 * ptrace(2), "Ptrace access mode checking".
 */
#ifndef CONTAINER_ACCESS_H
#define CONTAINER_ACCESS_H

#include "container/proc.h"

#define ACCESS_TEXT_BYTES 160

/*
 * In the order of the kernel's checks. CAP_SYS_PTRACE in the process's user namespace removes all
 * reasons except the last.
 */
enum access_reason {
	ACCESS_OTHER_USER, /* its user and group ids are not all equal to ours */
	/* It refuses access (PR_SET_DUMPABLE), or its program has more rights than its user. */
	ACCESS_NOT_DUMPABLE,
	ACCESS_CAPABILITIES, /* it holds capabilities that we lack */
	ACCESS_ELSEWHERE,    /* another user namespace, or a security module */
	ACCESS_REASONS,
};

struct access_denial {
	enum access_reason reason;
	uid_t uid;        /* effective user id */
	bool same_user;   /* with ACCESS_OTHER_USER: only the groups differ */
	uint64_t lacking; /* with ACCESS_CAPABILITIES: capabilities that we lack */
};

/*
 * Determines the reason for a process that denies access. dumpable: its files in /proc belong to
 * its own user.
 */
struct access_denial access_report(const struct proc_status *self, const struct proc_status *target,
				   bool dumpable);

/* Like access_report, with the present contents of /proc. 0 or errors of proc_status. */
int access_probe(pid_t pid, struct access_denial *ret_denial);

/*
 * Writes the reason as text, at most ACCESS_TEXT_BYTES. Examples: "it belongs to user 1000", "it
 * holds CAP_NET_RAW, which we lack".
 */
void access_text(const struct access_denial *denial, char *buf, size_t cap);

#endif
