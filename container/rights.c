#include "container/rights.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "container/ask.h"
#include "container/proc.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define RIGHTS_DAC (1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH)
#define RIGHTS_SET_IDS (1U << CAP_SETUID | 1U << CAP_SETGID)
#define RIGHTS_ACL_BYTES_MAX 4096 /* larger lists are refused */
#define RIGHTS_OVERFLOW_ID 65534  /* stands for RIGHTS_NOBODY (Linux include/linux/highuid.h) */

static bool rights_in_our_user_namespace(pid_t pid)
{
	struct stat ours, its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return !stat("/proc/self/ns/user", &ours) && !stat(path, &its) &&
	       ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

/* Parses the line "Groups:" of /proc/PID/status. Groups beyond the limit are unknown. */
static int rights_groups(const char *text, struct rights *r)
{
	const char *line = strstr(text, "\nGroups:"), *p;
	uint64_t group;
	int n = 0;

	if (!line)
		return 0;
	line += strlen("\nGroups:");
	line += strspn(line, "\t ");
	for (p = line; n < RIGHTS_GROUPS_MAX && proc_number(&p, 10, &group); p += *p == ' ')
		n++;
	r->groups = n ? calloc((size_t)n, sizeof(*r->groups)) : NULL;
	if (n && !r->groups)
		return -ENOMEM;
	bool more = proc_number(&p, 10, &group);

	for (p = line; r->ngroups < n && proc_number(&p, 10, &group); p += *p == ' ')
		r->groups[r->ngroups++] = (gid_t)group;
	if (more) {
		r->groups[n - 1] = r->gid;
		r->gid = RIGHTS_NOBODY;
	}
	return 0;
}

struct rights_question {
	pid_t pid;
	bool ours, sets_ids;
};

static int rights_ask_user_namespace(void *question)
{
	struct rights_question *q = question;

	q->ours = rights_in_our_user_namespace(q->pid);
	return 0;
}

static int rights_ask_file_caps(void *question)
{
	struct rights_question *q = question;
	struct vfs_ns_cap_data caps = {0};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", q->pid);
	if (getxattr(path, "security.capability", &caps, sizeof(caps)) >= 0)
		q->sets_ids =
			le32toh(caps.data[0].permitted | caps.data[0].inheritable) & RIGHTS_SET_IDS;
	else
		q->sets_ids = errno != ENODATA && errno != EOPNOTSUPP;
	return 0;
}

/*
 * Whether the file of the program may give it CAP_SETUID or CAP_SETGID. AT_SECURE alone does not
 * tell: security modules set it for services, and other capabilities set it too.
 */
static bool rights_file_sets_ids(pid_t pid)
{
	struct rights_question q = {.pid = pid, .sets_ids = true};

	return ask(pid, rights_ask_file_caps, NULL, &q, sizeof(q)) || q.sets_ids;
}

/*
 * Limits the rights of a program that may have gained ids to those that its user surely has. The
 * kernel tells the program its ids when it starts (auxv), in the program's user namespace. The
 * program may change its real ids later.
 */
static int rights_limit(pid_t pid, const struct proc_status *s, struct rights *r)
{
	uint64_t uid = 0, euid = 0, gid = 0, egid = 0, secure = 0;
	AUTO_FREE char *auxv = NULL;
	size_t len = 0;
	int error = proc_read(pid, 0, "auxv", PROC_FILE_MAX, &auxv, &len);

	if (error && error != -EACCES && error != -EPERM)
		return error;
	/* Without memory it is ending, or is a thread of the kernel. Its ids prove nothing. */
	if (!error && !len)
		return -ESRCH;
	size_t word = proc_auxv_word(auxv, len);
	bool known = word && !proc_auxv_find(auxv, len, word, AT_UID, &uid) &&
		     !proc_auxv_find(auxv, len, word, AT_EUID, &euid) &&
		     !proc_auxv_find(auxv, len, word, AT_GID, &gid) &&
		     !proc_auxv_find(auxv, len, word, AT_EGID, &egid) &&
		     !proc_auxv_find(auxv, len, word, AT_SECURE, &secure);

	if (known && !uid)
		return 0;
	bool sets_ids = !known || uid != euid || (secure && rights_file_sets_ids(pid));
	bool other_user = known && uid != s->uids.real;

	if (!sets_ids && gid == egid)
		return 0;
	/* Unlike others, a setgid program cannot have changed its user and further groups. */
	if (sets_ids || other_user)
		r->ngroups = 0;
	if (sets_ids || other_user || gid != s->gids.real)
		r->gid = RIGHTS_NOBODY;
	if (other_user)
		r->uid = RIGHTS_NOBODY;
	r->all = false;
	return 0;
}

int rights_read(pid_t pid, struct proc_status *ret_status, struct rights *ret_rights)
{
	struct rights_question q = {.pid = pid};
	struct proc_status s;
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = proc_read(pid, 0, "status", PROC_FILE_MAX, &text, &len);

	if (!r)
		r = proc_status_parse(text, &s);
	if (r)
		return r;
	/* Root's programs drop rights by their other ids. */
	bool root = !s.uids.real, all = root && (s.cap_effective & RIGHTS_DAC);

	if (all)
		r = ask(pid, rights_ask_user_namespace, NULL, &q, sizeof(q));
	if (r)
		return r;
	struct rights rights = {.uid = root ? s.uids.fs : s.uids.real,
				.gid = root ? s.gids.fs : s.gids.real,
				.all = all && q.ours};

	r = rights_groups(text, &rights);
	if (!r)
		r = rights_limit(pid, &s, &rights);
	if (r) {
		rights_free(&rights);
		return r;
	}
	*ret_status = s;
	*ret_rights = rights;
	return 0;
}

bool rights_ended_as_root(pid_t pid)
{
	struct rights_question q = {.pid = pid};
	struct proc_status s;

	return !proc_status(pid, &s) && s.state == 'Z' && !s.uids.real && !s.uids.fs &&
	       (s.cap_effective & RIGHTS_DAC) == RIGHTS_DAC &&
	       !ask(pid, rights_ask_user_namespace, NULL, &q, sizeof(q)) && q.ours;
}

int rights_copy(const struct rights *r, struct rights *ret_copy)
{
	size_t bytes = (size_t)r->ngroups * sizeof(*r->groups);
	gid_t *groups = bytes ? malloc(bytes) : NULL;

	if (bytes && !groups)
		return -ENOMEM;
	if (bytes)
		memcpy(groups, r->groups, bytes);
	*ret_copy = *r;
	ret_copy->groups = groups;
	return 0;
}

void rights_free(struct rights *r)
{
	free(r->groups);
	*r = (struct rights){0};
}

/*
 * Threads with other rights. When one changes its ids, the kernel makes the process not dumpable,
 * so that no core dump becomes a file of these ids. The last one restores the state from before
 * the first one.
 */
static struct {
	pthread_mutex_t lock;
	unsigned threads;
	bool dumpable;
} rights_changed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void rights_begin_change(void)
{
	pthread_mutex_lock(&rights_changed.lock);
	if (!rights_changed.threads++)
		rights_changed.dumpable = prctl(PR_GET_DUMPABLE) == 1;
	pthread_mutex_unlock(&rights_changed.lock);
}

static void rights_end_change(void)
{
	pthread_mutex_lock(&rights_changed.lock);
	if (!--rights_changed.threads && rights_changed.dumpable)
		prctl(PR_SET_DUMPABLE, 1);
	pthread_mutex_unlock(&rights_changed.lock);
}

struct rights_saved {
	uid_t uid;
	gid_t gid;
	bool same_ids; /* the ids were not changed */
	int ngroups;
	gid_t groups[RIGHTS_GROUPS_MAX];
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
};

static bool rights_save(struct rights_saved *s)
{
	/* An invalid id changes nothing. */
	s->uid = (uid_t)setfsuid((uid_t)-1);
	s->gid = (gid_t)setfsgid((gid_t)-1);
	s->ngroups = getgroups(RIGHTS_GROUPS_MAX, s->groups);
	s->header = (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
	return s->ngroups >= 0 && !syscall(SYS_capget, &s->header, s->caps);
}

/* Unlike the function of the C library, the system call changes this thread only. */
static bool rights_set_groups(int n, const gid_t *groups)
{
	return !syscall(SYS_setgroups, (size_t)n, groups);
}

static bool rights_set_ids(uid_t uid, gid_t gid)
{
	gid = gid == RIGHTS_NOBODY ? RIGHTS_OVERFLOW_ID : gid;
	setfsgid(gid);
	setfsuid(uid);
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

_Noreturn static void rights_stay_lost(void)
{
	log_error("cannot take back its own rights after it opened a target's file: the kernel "
		  "refuses; run it with CAP_SETUID and CAP_SETGID, or without both");
	_exit(EXIT_FAILURE);
}

void rights_restore(struct rights_saved *s)
{
	if (!s)
		return;
	if ((!s->same_ids &&
	     (!rights_set_ids(s->uid, s->gid) || !rights_set_groups(s->ngroups, s->groups))) ||
	    syscall(SYS_capset, &s->header, s->caps))
		rights_stay_lost();
	rights_end_change();
}

/* Changes the ids. False: nothing changed. */
static bool rights_take_ids(const struct rights *r, struct rights_saved *s,
			    const struct __user_cap_data_struct *caps)
{
	/* In a user namespace, perhaps not even our own groups can be set again. */
	if ((caps[0].effective & RIGHTS_SET_IDS) != RIGHTS_SET_IDS ||
	    !rights_set_groups(s->ngroups, s->groups) || !rights_set_groups(r->ngroups, r->groups))
		return false;
	if (rights_set_ids(r->uid, r->gid))
		return true;
	if (!rights_set_ids(s->uid, s->gid) || !rights_set_groups(s->ngroups, s->groups))
		rights_stay_lost();
	return false;
}

int rights_assume(const struct rights *r, struct rights_saved **ret_saved)
{
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	/* One for each thread, so that no memory is needed. */
	static _Thread_local struct rights_saved saved;
	struct rights_saved *s = &saved;

	*ret_saved = NULL;
	if (r->all)
		return 0;
	if (r->uid == RIGHTS_NOBODY || !rights_save(s))
		return -EPERM;
	memcpy(caps, s->caps, sizeof(caps));
	caps[0].effective &= ~RIGHTS_DAC;
	s->same_ids = r->uid == s->uid && r->gid == s->gid && r->ngroups == s->ngroups &&
		      (!r->ngroups ||
		       !memcmp(r->groups, s->groups, (size_t)r->ngroups * sizeof(*r->groups)));
	if (s->same_ids && caps[0].effective == s->caps[0].effective)
		return 0;
	rights_begin_change();
	if (!s->same_ids && !rights_take_ids(r, s, caps)) {
		rights_end_change();
		return -EPERM;
	}
	*ret_saved = s;
	if (!syscall(SYS_capset, &(*ret_saved)->header, caps))
		return 0;
	rights_restore(*ret_saved);
	*ret_saved = NULL;
	return -EPERM;
}

bool rights_unknown(const struct rights *r)
{
	return !r->all && r->gid == RIGHTS_NOBODY;
}

static bool rights_in_group(const struct rights *r, gid_t gid)
{
	bool in = r->gid == gid;

	for (int i = 0; i < r->ngroups && !in; i++)
		in = r->groups[i] == gid;
	return in;
}

bool rights_exceed(const struct rights *now, const struct rights *before)
{
	bool exceed = now->all && !before->all;

	if (!before->uid)
		return exceed;
	exceed |= now->uid != before->uid || !rights_in_group(before, now->gid);
	for (int i = 0; i < now->ngroups && !exceed; i++)
		exceed = !rights_in_group(before, now->groups[i]);
	return exceed;
}

void rights_intersect(struct rights *r, const struct rights *now)
{
	int n = 0;

	r->all &= now->all;
	/* The unknown user of a setuid program was given by r's. */
	if (r->uid != now->uid && now->uid != RIGHTS_NOBODY)
		r->uid = RIGHTS_NOBODY;
	if (!rights_in_group(now, r->gid))
		r->gid = RIGHTS_NOBODY;
	for (int i = 0; i < r->ngroups; i++)
		if (rights_in_group(now, r->groups[i]))
			r->groups[n++] = r->groups[i];
	r->ngroups = n;
}

/* Access control list of a file. Returns its entries, 0 without a list, or -1. */
static int rights_read_acl(int fd, struct posix_acl_xattr_entry *entries)
{
	char path[32], bytes[RIGHTS_ACL_BYTES_MAX];
	struct posix_acl_xattr_header header;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = getxattr(path, "system.posix_acl_access", bytes, sizeof(bytes));

	if (n < 0)
		return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -1;
	if ((size_t)n < sizeof(header))
		return -1;
	memcpy(&header, bytes, sizeof(header));
	if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION)
		return -1;
	memcpy(entries, bytes + sizeof(header), (size_t)n - sizeof(header));
	return (int)(((size_t)n - sizeof(header)) / sizeof(*entries));
}

/*
 * Applies an ACL to a user who is not the owner. The order of the entries is: users, groups, mask,
 * others. Users and groups without an id in our user namespace have RIGHTS_NOBODY here.
 */
static bool rights_acl_allows(const struct rights *r, const struct posix_acl_xattr_entry *entries,
			      int n, gid_t file_gid, int want)
{
	bool member = false, found = false, unknown = r->gid == RIGHTS_NOBODY;
	int allowed = 0, others = 0, mask = want, each = want;

	for (int i = 0; i < n; i++) {
		int tag = le16toh(entries[i].e_tag), perm = le16toh(entries[i].e_perm);
		uint32_t id = le32toh(entries[i].e_id);

		if (tag == ACL_USER && r->uid == RIGHTS_NOBODY) {
			each &= perm;
		} else if (tag == ACL_USER && id == r->uid) {
			allowed = perm;
			found = true;
		} else if (tag == ACL_GROUP_OBJ || tag == ACL_GROUP) {
			gid_t gid = tag == ACL_GROUP ? id : file_gid;
			bool in = gid != RIGHTS_NOBODY && rights_in_group(r, gid);

			each &= unknown ? perm : want;
			member |= in;
			if (in && !found && (perm & want) == want) {
				allowed = perm;
				found = true;
			}
		} else if (tag == ACL_MASK) {
			mask = perm;
		} else if (tag == ACL_OTHER) {
			others = perm;
		}
	}
	if (!found)
		return !member && (others & each & (unknown ? mask : want) & want) == want;
	return (allowed & mask & want) == want;
}

bool rights_may(const struct rights *r, int fd, const struct stat *st, int want)
{
	struct posix_acl_xattr_entry entries[RIGHTS_ACL_BYTES_MAX / 8];

	if (r->all)
		return true;
	if (st->st_uid == r->uid)
		return ((int)(st->st_mode >> 6) & want) == want;
	int n = rights_read_acl(fd, entries);

	if (n)
		return n > 0 && rights_acl_allows(r, entries, n, st->st_gid, want);
	int others = (int)st->st_mode, group = others >> 3;

	if (rights_in_group(r, st->st_gid))
		others = group;
	else if (r->gid == RIGHTS_NOBODY)
		others &= group;
	return (others & want) == want;
}
