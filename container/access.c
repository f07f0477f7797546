#include "container/access.h"

#include "container/ask.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCESS_NAMED 3 /* capabilities that a text names; the rest are counted */

/* Names by number, from linux/capability.h. */
static const char *const access_capabilities[] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};

#define ACCESS_CAPABILITIES_KNOWN \
	((int)(sizeof(access_capabilities) / sizeof(access_capabilities[0])))

/* The kernel compares our file system ids with the process's real, effective and saved ids. */
static bool access_same_ids(const struct proc_ids *ours, const struct proc_ids *its)
{
	return its->real == ours->fs && its->effective == ours->fs && its->saved == ours->fs;
}

struct access_denial access_report(const struct proc_status *self, const struct proc_status *target,
				   bool dumpable)
{
	struct access_denial d = {.reason = ACCESS_ELSEWHERE, .uid = target->uid};
	uint64_t lacking = target->cap_permitted & ~self->cap_effective;

	if (self->cap_effective >> CAP_SYS_PTRACE & 1)
		return d;
	d.same_user = access_same_ids(&self->uids, &target->uids);
	if (!d.same_user || !access_same_ids(&self->gids, &target->gids)) {
		d.reason = ACCESS_OTHER_USER;
	} else if (!dumpable) {
		d.reason = ACCESS_NOT_DUMPABLE;
	} else if (lacking) {
		d.reason = ACCESS_CAPABILITIES;
		d.lacking = lacking;
	}
	return d;
}

struct access_question {
	pid_t pid, self;
	struct access_denial denial;
};

static int access_ask(void *question)
{
	struct access_question *q = question;
	struct proc_status self, target;
	char path[64];
	struct stat st;
	int r = proc_status(q->self, &self);

	if (!r)
		r = proc_status(q->pid, &target);
	if (r)
		return r;
	/* Files of a process that is not dumpable belong to root. */
	snprintf(path, sizeof(path), "/proc/%d/status", q->pid);
	q->denial = access_report(&self, &target, stat(path, &st) || st.st_uid == target.uid);
	return 0;
}

int access_probe(pid_t pid, struct access_denial *ret_denial)
{
	struct access_question q = {.pid = pid, .self = getpid()};
	int r = ask(pid, access_ask, NULL, &q, sizeof(q));

	if (!r)
		*ret_denial = q.denial;
	return r;
}

static void access_text_capabilities(uint64_t lacking, char *buf, size_t cap)
{
	size_t len = (size_t)snprintf(buf, cap, "it holds ");
	int named = 0;

	for (int i = 0; i < ACCESS_CAPABILITIES_KNOWN && named < ACCESS_NAMED && len < cap; i++)
		if (lacking >> i & 1) {
			len += (size_t)snprintf(buf + len, cap - len, "%sCAP_%s",
						named++ ? ", " : "", access_capabilities[i]);
			lacking &= ~(1ULL << i);
		}
	int more = __builtin_popcountll(lacking);

	if (more && len < cap)
		len += (size_t)snprintf(buf + len, cap - len,
					named ? " and %d more" : "%d newer capabilities", more);
	if (len < cap)
		snprintf(buf + len, cap - len, ", which we lack");
}

void access_text(const struct access_denial *denial, char *buf, size_t cap)
{
	switch (denial->reason) {
	case ACCESS_OTHER_USER:
		if (denial->same_user)
			snprintf(buf, cap, "its groups are not ours");
		else
			snprintf(buf, cap, "it belongs to user %u", denial->uid);
		break;
	case ACCESS_NOT_DUMPABLE:
		snprintf(buf, cap,
			 "it is not dumpable: it set PR_SET_DUMPABLE to 0, or its program has more "
			 "rights than its user");
		break;
	case ACCESS_CAPABILITIES:
		access_text_capabilities(denial->lacking, buf, cap);
		break;
	case ACCESS_ELSEWHERE:
	case ACCESS_REASONS:
		snprintf(buf, cap,
			 "it is in another user namespace, or a security module forbids it");
		break;
	}
}
