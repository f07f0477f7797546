#include "container/opener.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "container/proc.h"
#include "container/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define OPENER_PROC_PATH 96
#define OPENER_OWN_ROOT 0 /* index of our own root, which is always pinned */
#define OPENER_NO_ROOT UINT32_MAX
#define OPENER_UID_MAP_MAX 8192

/*
 * Identity of a root. Two mounts of one directory differ, because different file systems may be
 * mounted below them.
 */
struct opener_root_key {
	uint64_t mnt_ns, dev, ino, mnt_id; /* mnt_id: 0 before Linux 5.8 */
};

struct opener_pinned_root {
	struct opener_root_key key;
	int root_fd, ns_fd; /* -1: the slot is free. Our own root needs no ns_fd */
	uid_t uid0;         /* uid 0 of the target's user namespace, as a uid of ours; -1: nobody */
	uint32_t users;
};

struct opener_pinned {
	struct opener_process process;
	uint32_t root;
	int root_error; /* error that left it without a root */
};

struct opener {
	VEC(struct opener_pinned_root) roots;
	VEC(struct opener_pinned) pinned;
	struct hashmap by_pid;
	bool by_steps;
};

static int opener_root_key_of(int root_fd, uint64_t mnt_ns, struct opener_root_key *key)
{
	struct statx stx;

	if (statx(root_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &stx))
		return -errno;
	*key = (struct opener_root_key){
		.mnt_ns = mnt_ns,
		.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.ino = stx.stx_ino,
		.mnt_id = stx.stx_mask & STATX_MNT_ID ? stx.stx_mnt_id : 0,
	};
	return 0;
}

static bool opener_same_root(const struct opener_root_key *a, const struct opener_root_key *b)
{
	return a->mnt_ns == b->mnt_ns && a->dev == b->dev && a->ino == b->ino &&
	       a->mnt_id == b->mnt_id;
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

int opener_new(struct opener **ret_opener)
{
	struct opener *o = calloc(1, sizeof(*o));
	struct opener_pinned_root own = {.root_fd = -1, .ns_fd = -1, .users = 1};
	struct stat ns = {0};

	if (!o)
		return -ENOMEM;
	/*
	 * If this fails, our own root never equals a target's root, which is then only opened once
	 * more.
	 */
	own.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (own.root_fd >= 0 && (stat("/proc/self/ns/mnt", &ns) ||
				 opener_root_key_of(own.root_fd, ns.st_ino, &own.key)))
		own.key = (struct opener_root_key){0};
	own.uid0 = opener_uid0(getpid());
	if (vec_push(&o->roots, own)) {
		cleanup_close(&own.root_fd);
		free(o);
		return -ENOMEM;
	}
	*ret_opener = o;
	return 0;
}

void opener_free(struct opener *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->roots.len; i++) {
		cleanup_close(&o->roots.v[i].root_fd);
		cleanup_close(&o->roots.v[i].ns_fd);
	}
	vec_free(&o->roots);
	vec_free(&o->pinned);
	hashmap_free(&o->by_pid);
	free(o);
}

void opener_without_openat2(struct opener *o)
{
	o->by_steps = true;
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

static void opener_root_drop(struct opener *o, uint32_t index)
{
	if (index == OPENER_NO_ROOT)
		return;
	struct opener_pinned_root *root = &o->roots.v[index];

	if (--root->users)
		return;
	cleanup_close(&root->root_fd);
	cleanup_close(&root->ns_fd);
	*root = (struct opener_pinned_root){.root_fd = -1, .ns_fd = -1};
}

/* Returns a free slot for a root, or OPENER_NO_ROOT. */
static uint32_t opener_free_slot(struct opener *o)
{
	static const struct opener_pinned_root empty = {.root_fd = -1, .ns_fd = -1};

	for (uint32_t i = 1; i < o->roots.len; i++)
		if (!o->roots.v[i].users)
			return i;
	if (o->roots.len > OPENER_ROOTS_MAX || vec_push(&o->roots, empty))
		return OPENER_NO_ROOT;
	return (uint32_t)o->roots.len - 1;
}

static int opener_open_root(pid_t pid, struct opener_pinned_root *root)
{
	char path[OPENER_PROC_PATH];
	AUTO_CLOSE int ns_fd = -1, root_fd = -1;
	struct stat ns;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns_fd < 0 || fstat(ns_fd, &ns))
		return errno == ENOENT ? -ESRCH : errno == ENFILE ? -EMFILE : -errno;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return errno == ENOENT ? -ESRCH : errno == ENFILE ? -EMFILE : -errno;
	int r = opener_root_key_of(root_fd, ns.st_ino, &root->key);

	if (r)
		return r;
	root->uid0 = opener_uid0(pid);
	root->root_fd = TAKE_FD(root_fd);
	root->ns_fd = TAKE_FD(ns_fd);
	root->users = 1;
	return 0;
}

/* Finds the process's root among the pinned ones, or pins it. */
static int opener_root_take(struct opener *o, pid_t pid, uint32_t *ret_index)
{
	struct opener_root_key key;
	int r = opener_identify_root(pid, &key);

	if (r)
		return r;
	for (uint32_t i = 0; i < o->roots.len; i++) {
		if (o->roots.v[i].users && opener_same_root(&o->roots.v[i].key, &key)) {
			o->roots.v[i].users++;
			*ret_index = i;
			return 0;
		}
	}
	uint32_t place = opener_free_slot(o);

	if (place == OPENER_NO_ROOT)
		return -EMFILE;
	r = opener_open_root(pid, &o->roots.v[place]);
	if (!r)
		*ret_index = place;
	return r;
}

static struct opener_pinned *opener_find(const struct opener *o, pid_t pid)
{
	const uint32_t *at = hashmap_get(&o->by_pid, (uint64_t)pid);

	return at ? &o->pinned.v[*at] : NULL;
}

/* Describes the process and takes a reference to its root. 0; -ESRCH: it has ended or is ending. */
static int opener_describe(struct opener *o, pid_t pid, struct opener_pinned *ret)
{
	struct opener_pinned p = {.root = OPENER_NO_ROOT};
	struct proc_status status;
	uint64_t start;
	int r = proc_start_ticks(pid, &p.process.start_ticks);

	if (!r)
		r = proc_status(pid, &status);
	if (r)
		return r;
	p.process.ns_pid = status.ns_pid;
	p.process.uid = status.uid;
	p.root_error = opener_root_take(o, pid, &p.root);
	p.process.other_root = p.root != OPENER_NO_ROOT && p.root != OPENER_OWN_ROOT;
	/* The same process must have supplied all of this data. */
	r = p.root_error == -ESRCH ? -ESRCH : proc_start_ticks(pid, &start);
	if (!r && start != p.process.start_ticks)
		r = -ESRCH;
	if (r) {
		opener_root_drop(o, p.root);
		return r;
	}
	*ret = p;
	return 0;
}

/* Adds an empty entry for pid to the table. */
static int opener_add(struct opener *o, pid_t pid, struct opener_pinned **ret)
{
	struct opener_pinned fresh = {.root = OPENER_NO_ROOT};

	if (vec_push(&o->pinned, fresh))
		return -ENOMEM;
	if (hashmap_put(&o->by_pid, (uint64_t)pid, (uint32_t)(o->pinned.len - 1))) {
		o->pinned.len--;
		return -ENOMEM;
	}
	*ret = &o->pinned.v[o->pinned.len - 1];
	return 0;
}

int opener_pin(struct opener *o, pid_t pid)
{
	struct opener_pinned *p = opener_find(o, pid), now;
	int r = pid > 0 ? opener_describe(o, pid, &now) : -ESRCH;

	if (r)
		return p && r == -ESRCH ? p->root_error : r;
	/*
	 * The same process became inaccessible: it changed its user or is ending. Keep the old
	 * data.
	 */
	if (p && now.root_error && p->process.start_ticks == now.process.start_ticks &&
	    p->root != OPENER_NO_ROOT)
		return 0;
	if (!p) {
		r = opener_add(o, pid, &p);
		if (r) {
			opener_root_drop(o, now.root);
			return r;
		}
	}
	opener_root_drop(o, p->root);
	*p = now;
	return p->root_error;
}

int opener_process(struct opener *o, pid_t pid, struct opener_process *ret_process)
{
	const struct opener_pinned *p = opener_find(o, pid);

	if (!p)
		return -ESRCH;
	*ret_process = p->process;
	return 0;
}

/*
 * Returns the pinned process; pins it first if necessary. If its root is inaccessible, fills *ret_p
 * and returns the error.
 */
static int opener_get(struct opener *o, pid_t pid, struct opener_pinned **ret_p)
{
	struct opener_pinned *p = opener_find(o, pid);
	int r = 0;

	if (!p || (p->root == OPENER_NO_ROOT && p->root_error == -EMFILE)) {
		r = opener_pin(o, pid);
		p = opener_find(o, pid);
	}
	if (!p)
		return r;
	*ret_p = p;
	return p->root_error;
}

int opener_root(struct opener *o, pid_t pid, int *ret_fd)
{
	struct opener_pinned *p;
	int r = opener_get(o, pid, &p);

	if (!r)
		*ret_fd = o->roots.v[p->root].root_fd;
	return r;
}

static int opener_resolve(struct opener *o, int root_fd, const char *path, int *ret_fd)
{
	if (!o->by_steps) {
		int r = resolve_openat2(root_fd, path, ret_fd);

		if (r != -ENOSYS)
			return r;
		o->by_steps = true;
	}
	return resolve_by_steps(root_fd, path, ret_fd);
}

bool opener_is_on_kernel_fs(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return true;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case SECURITYFS_MAGIC:
	case BPF_FS_MAGIC:
	case PSTOREFS_MAGIC:
	case EFIVARFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Accepted owners of a file. any: all owners. */
struct opener_owners {
	bool any;
	uid_t uid, uid0;
};

int opener_reopen(int path_fd, int *ret_fd)
{
	char path[OPENER_PROC_PATH];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Checks the file behind path_fd, then opens it for reading. */
static int opener_accept(int path_fd, const struct opener_owners *owners, uint64_t max_bytes,
			 int *ret_fd)
{
	struct stat st;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || opener_is_on_kernel_fs(path_fd))
		return -EACCES;
	if (!owners->any && st.st_uid && st.st_uid != owners->uid && st.st_uid != owners->uid0)
		return -EACCES;
	if (st.st_size < 0 || (uint64_t)st.st_size > max_bytes)
		return -E2BIG;
	return opener_reopen(path_fd, ret_fd);
}

/*
 * Opens a root only for this call, because OPENER_ROOTS_MAX roots are pinned. The process must be
 * alive.
 */
static int opener_root_once(const struct opener_pinned *p, pid_t pid,
			    struct opener_pinned_root *root)
{
	uint64_t start;
	int r = opener_open_root(pid, root);

	if (r)
		return r;
	r = proc_start_ticks(pid, &start);
	if (!r && start == p->process.start_ticks)
		return 0;
	cleanup_close(&root->root_fd);
	cleanup_close(&root->ns_fd);
	return -ESRCH;
}

/* Opens path in the target's root as O_PATH. *ret_owners: accepted owners of the file. */
static int opener_open_path(struct opener *o, pid_t pid, const char *path, int *ret_fd,
			    struct opener_owners *ret_owners)
{
	struct opener_pinned_root once = {.root_fd = -1, .ns_fd = -1}, *root = &once;
	struct opener_pinned *p;
	int r = opener_get(o, pid, &p);

	if (!r)
		root = &o->roots.v[p->root];
	else if (r == -EMFILE && opener_find(o, pid))
		r = opener_root_once(p, pid, &once);
	if (r)
		return r;
	*ret_owners = (struct opener_owners){.uid = p->process.uid, .uid0 = root->uid0};
	r = opener_resolve(o, root->root_fd, path, ret_fd);
	cleanup_close(&once.root_fd);
	cleanup_close(&once.ns_fd);
	return r;
}

int opener_path(struct opener *o, pid_t pid, const char *path, int *ret_fd)
{
	struct opener_owners owners;

	return opener_open_path(o, pid, path, ret_fd, &owners);
}

int opener_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd)
{
	struct opener_owners owners = {0};
	AUTO_CLOSE int path_fd = -1;
	int r = opener_open_path(o, pid, path, &path_fd, &owners);

	return r ? r : opener_accept(path_fd, &owners, max_bytes, ret_fd);
}

int opener_map_file(struct opener *o, pid_t pid, uint64_t start, uint64_t end, uint64_t max_bytes,
		    int *ret_fd)
{
	static const struct opener_owners anybody = {.any = true};
	char path[OPENER_PROC_PATH];
	struct opener_pinned *p;
	uint64_t ticks;
	int r = opener_get(o, pid, &p);

	/* A process that is pinned without its root is sufficient. */
	if (r && !opener_find(o, pid))
		return r;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
		 (unsigned long long)end);
	AUTO_CLOSE int path_fd = open(path, O_PATH | O_CLOEXEC);

	r = path_fd < 0 ? -errno : 0;
	int alive = proc_start_ticks(pid, &ticks);

	if (alive == -ESRCH || (!alive && ticks != p->process.start_ticks))
		return -ESRCH;
	return r ? r : opener_accept(path_fd, &anybody, max_bytes, ret_fd);
}

static int opener_own_perfmap(struct opener *o, const struct opener_pinned *p, pid_t pid,
			      uint64_t max_bytes, int *ret_fd)
{
	const struct opener_pinned_root *own = &o->roots.v[OPENER_OWN_ROOT];
	struct opener_owners owners = {.uid = p->process.uid, .uid0 = own->uid0};
	AUTO_CLOSE int path_fd = -1;
	char path[OPENER_PROC_PATH];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	int r = opener_resolve(o, own->root_fd, path, &path_fd);

	return r ? r : opener_accept(path_fd, &owners, max_bytes, ret_fd);
}

int opener_perfmap(struct opener *o, pid_t pid, uint64_t max_bytes, int *ret_fd)
{
	char path[OPENER_PROC_PATH];
	struct opener_pinned *p;
	int entered = opener_get(o, pid, &p);

	if (entered && !opener_find(o, pid))
		return entered;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", p->process.ns_pid);
	int first = opener_file(o, pid, path, max_bytes, ret_fd);

	if (!first)
		return 0;
	int r = opener_own_perfmap(o, p, pid, max_bytes, ret_fd);

	/*
	 * If the target's root is readable, the map with that number in our /tmp belongs to another
	 * process.
	 */
	if (r && entered && p->process.ns_pid != pid) {
		int other = opener_own_perfmap(o, p, p->process.ns_pid, max_bytes, ret_fd);

		r = r == -ENOENT || !other ? other : r;
	}
	return r && first != -ENOENT ? first : r;
}
