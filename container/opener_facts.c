/* Asks the kernel about a process and its root: a part of container/opener.h. */
#include "base/cleanup.h"
#include "container/ask.h"
#include "container/opener_impl.h"
#include "container/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define OPENER_UID_MAP_MAX 8192

int opener_root_key_of(int root_fd, uint64_t mnt_ns, struct opener_root_key *key)
{
	struct statx stx;

	/* The root may be on a file system that never answers; with this flag it is not asked. */
	if (statx(root_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &stx))
		return -errno;
	*key = (struct opener_root_key){
		.mnt_ns = mnt_ns,
		.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.ino = stx.stx_ino,
		.mnt_id = stx.stx_mask & STATX_MNT_ID ? stx.stx_mnt_id : 0,
	};
	return 0;
}

/*
 * Returns our uid for uid 0 of the process's user namespace. The lines are "INSIDE OUTSIDE COUNT".
 */
static uid_t opener_uid0(pid_t pid)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	if (proc_read(pid, 0, "uid_map", OPENER_UID_MAP_MAX, &text, &len))
		return (uid_t)-1;
	for (char *line = text; *line;) {
		unsigned long inside, outside;

		if (sscanf(line, "%lu %lu", &inside, &outside) == 2 && !inside)
			return (uid_t)outside;
		line = strchrnul(line, '\n');
		line += *line == '\n';
	}
	return (uid_t)-1;
}

/*
 * Identifies /proc/PID/root without keeping a descriptor. 0, or the error why it is inaccessible.
 */
static int opener_identify_root(pid_t pid, struct opener_root_key *key)
{
	char path[OPENER_PROC_PATH];
	struct stat ns;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &ns))
		return errno == ENOENT ? -ESRCH : -errno;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	AUTO_CLOSE int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == ENFILE ? -EMFILE : -errno;
	return opener_root_key_of(fd, ns.st_ino, key);
}

void opener_close_root(struct opener_pinned_root *root)
{
	cleanup_close(&root->root_fd);
	mounts_close(&root->mounts);
	*root = (struct opener_pinned_root)OPENER_CLOSED_ROOT;
}

/*
 * Whether a mount namespace belongs to our user namespace or to one above. The kernel tells the
 * owner only of namespaces below ours.
 */
static bool opener_trusts_mounts(int ns_fd)
{
	AUTO_CLOSE int owner = ioctl(ns_fd, NS_GET_USERNS);
	struct stat ours, its;

	return owner < 0 ? errno == EPERM
			 : !stat("/proc/self/ns/user", &ours) && !fstat(owner, &its) &&
				   ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

static int opener_open_root_now(pid_t pid, struct opener_pinned_root *ret_root)
{
	struct opener_pinned_root root = OPENER_CLOSED_ROOT;
	char path[OPENER_PROC_PATH];
	AUTO_CLOSE int ns_fd = -1;
	struct stat ns;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns_fd < 0 || fstat(ns_fd, &ns))
		return errno == ENOENT ? -ESRCH : errno == ENFILE ? -EMFILE : -errno;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root.root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root.root_fd >= 0 ? opener_root_key_of(root.root_fd, ns.st_ino, &root.key)
		: errno == ENOENT ? -ESRCH
		: errno == ENFILE ? -EMFILE
				  : -errno;

	if (!r)
		r = mounts_open(pid, &root.mounts);
	if (r) {
		opener_close_root(&root);
		return r;
	}
	root.trusted = opener_trusts_mounts(ns_fd);
	root.users = 1;
	*ret_root = root;
	return 0;
}

struct opener_question {
	pid_t pid;
	struct opener_pinned_root root;
};

static int opener_ask_root(void *question)
{
	struct opener_question *q = question;

	return opener_open_root_now(q->pid, &q->root);
}

static void opener_drop_root(void *question)
{
	opener_close_root(&((struct opener_question *)question)->root);
}

int opener_open_root(pid_t pid, struct opener_pinned_root *ret_root)
{
	struct opener_question q = {.pid = pid, .root = OPENER_CLOSED_ROOT};
	int r = ask(pid, opener_ask_root, opener_drop_root, &q, sizeof(q));

	if (!r)
		*ret_root = q.root;
	return r;
}

static void opener_drop_facts(void *facts)
{
	rights_free(&((struct opener_facts *)facts)->rights);
}

/* Reads the rights from a thread other than the main one, which has ended. -ESRCH: none runs. */
static int opener_read_thread(struct opener_facts *f)
{
	char path[OPENER_PROC_PATH];
	pid_t ns_pid;
	int r = proc_status(f->pid, &f->status);

	if (r)
		return r;
	ns_pid = f->status.ns_pid;
	snprintf(path, sizeof(path), "/proc/%d/task", f->pid);
	DIR *dir = opendir(path);

	r = dir ? -ESRCH : -errno;
	for (struct dirent *entry; r == -ESRCH && dir && (entry = readdir(dir));) {
		f->thread = atoi(entry->d_name);
		if (f->thread > 0 && f->thread != f->pid)
			r = rights_read(f->thread, &f->status, &f->rights);
	}
	if (dir)
		closedir(dir);
	f->status.ns_pid = ns_pid;
	return r == -ENOENT ? -ESRCH : r;
}

static int opener_ask_facts(void *facts)
{
	struct opener_facts *f = facts;
	uint64_t start;
	int r = proc_start_ticks(f->pid, &f->start_ticks);

	f->thread = f->pid;
	if (!r)
		r = rights_read(f->pid, &f->status, &f->rights);
	if (r == -ESRCH)
		r = opener_read_thread(f);
	if (r)
		return r;
	f->uid0 = opener_uid0(f->thread);
	f->key_error = opener_identify_root(f->thread, &f->key);
	/* The same process must have supplied all of this data. */
	r = f->key_error == -ESRCH ? -ESRCH : proc_start_ticks(f->pid, &start);
	if (!r && start != f->start_ticks)
		r = -ESRCH;
	if (r)
		opener_drop_facts(f);
	return r;
}

int opener_read_facts(struct opener_facts *f)
{
	return ask(f->pid, opener_ask_facts, opener_drop_facts, f, sizeof(*f));
}
