/* Why the kernel does not let us look into a process: its files, maps and samples. ptrace(2), "Ptrace access mode checking". */
#ifndef CONTAINER_ACCESS_H
#define CONTAINER_ACCESS_H

#include "container/proc.h"

#define ACCESS_TEXT_BYTES 160

/* In the order in which the kernel looks; CAP_SYS_PTRACE in the process's user namespace opens all but the last. */
enum access_reason {
	ACCESS_OTHER_USER, /* its user and group ids are not all ours */
	ACCESS_NOT_DUMPABLE, /* it does not want to be read (PR_SET_DUMPABLE), or its program may more than its user */
	ACCESS_CAPABILITIES, /* it holds some that we do not */
	ACCESS_ELSEWHERE, /* nothing of these: another user namespace, or a security module */
	ACCESS_REASONS,
};

struct access_denial {
	enum access_reason reason;
	uid_t uid; /* its effective one */
	bool same_user; /* with ACCESS_OTHER_USER: it is only the groups */
	uint64_t lacking; /* capabilities that it holds and we do not, with ACCESS_CAPABILITIES */
};

/* Of a process that may not be looked into. dumpable: its files in /proc are its own user's. */
struct access_denial access_judge(const struct proc_status *self, const struct proc_status *target, bool dumpable);

/* The same, of what /proc says now. 0; errors of proc_status. */
int access_look(pid_t pid, struct access_denial *ret_denial);

/* "it belongs to user 1000", "it holds CAP_NET_RAW, which we lack": at most ACCESS_TEXT_BYTES. */
void access_text(const struct access_denial *denial, char *buf, size_t cap);

#endif
