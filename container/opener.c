#include "container/ask.h"
#include "container/opener_impl.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "container/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define OPENER_UID_MAP_MAX 8192
#define OPENER_TRIES 8 /* places that are examined for one that is free */

static int opener_root_key_of(int root_fd, uint64_t mnt_ns, struct opener_root_key *key)
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

/* Learns the devices that are always permitted. */
static void opener_know_devices(struct opener *o)
{
	struct opener_pinned_root *own = &o->roots.v[OPENER_OWN_ROOT];
	AUTO_CLOSE int memory = memfd_create("profcpu", MFD_CLOEXEC);
	struct mount *m = own->root_fd < 0 ? NULL : mounts_of(&own->mounts, own->root_fd);

	o->own_dev = m ? m->dev : own->root_fd < 0 ? 0 : mounts_device(own->root_fd);
	o->memory_dev = memory < 0 ? 0 : mounts_device(memory);
}

int opener_new_in(int root_fd, struct opener **ret_opener)
{
	struct opener *o = calloc(1, sizeof(*o));
	struct opener_pinned_root own = OPENER_CLOSED_ROOT;
	struct stat ns = {0};

	if (!o)
		return -ENOMEM;
	/*
	 * If this fails, our own root never equals a target's root, which is then only opened once
	 * more.
	 */
	own.root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	if (own.root_fd >= 0 && (stat("/proc/self/ns/mnt", &ns) ||
				 opener_root_key_of(own.root_fd, ns.st_ino, &own.key)))
		own.key = (struct opener_root_key){0};
	own.uid0 = opener_uid0(getpid());
	own.trusted = true;
	own.users = 1;
	(void)mounts_open(0, &own.mounts);
	if (vec_push(&o->roots, own)) {
		opener_close_root(&own);
		free(o);
		return -ENOMEM;
	}
	opener_know_devices(o);
	*ret_opener = o;
	return 0;
}

int opener_new(struct opener **ret_opener)
{
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return opener_new_in(root, ret_opener);
}

void opener_free(struct opener *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->roots.len; i++)
		opener_close_root(&o->roots.v[i]);
	for (size_t i = 0; i < o->pinned.len; i++)
		rights_free(&o->pinned.v[i].rights);
	vec_free(&o->roots);
	vec_free(&o->pinned);
	hashmap_free(&o->by_pid);
	free(o);
}

void opener_without_openat2(struct opener *o)
{
	o->by_steps = true;
}

void opener_without_setuid(struct opener *o)
{
	o->by_mode = true;
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

static void opener_root_drop(struct opener *o, uint32_t index)
{
	if (index == OPENER_NO_ROOT)
		return;
	struct opener_pinned_root *root = &o->roots.v[index];

	if (--root->users)
		return;
	opener_close_root(root);
}

/* Whether a process has ended. Each end is found once, so frequent calls cost little. */
static bool opener_has_ended(struct opener_pinned *p)
{
	uint64_t start = 0;
	int r = p->ended ? 0 : proc_start_ticks(p->pid, &start);

	p->ended |= r == -ESRCH || (!r && start != p->process.start_ticks);
	return p->ended;
}

static bool opener_root_is_alive(struct opener *o, uint32_t index)
{
	for (size_t i = 0; i < o->pinned.len; i++)
		if (o->pinned.v[i].root == index && !opener_has_ended(&o->pinned.v[i]))
			return true;
	return false;
}

/* Takes a root from its processes, all of which have ended. */
static void opener_root_take_back(struct opener *o, uint32_t index)
{
	for (size_t i = 0; i < o->pinned.len; i++) {
		if (o->pinned.v[i].root != index)
			continue;
		o->pinned.v[i].root = OPENER_NO_ROOT;
		o->pinned.v[i].root_error = -ESRCH;
	}
	opener_close_root(&o->roots.v[index]);
}

/* Returns a free slot for a root, or OPENER_NO_ROOT. */
static uint32_t opener_free_slot(struct opener *o)
{
	static const struct opener_pinned_root empty = OPENER_CLOSED_ROOT;

	for (uint32_t i = 1; i < o->roots.len; i++)
		if (!o->roots.v[i].users)
			return i;
	if (o->roots.len <= OPENER_ROOTS_MAX)
		return vec_push(&o->roots, empty) ? OPENER_NO_ROOT : (uint32_t)o->roots.len - 1;
	for (int i = 0; i < OPENER_TRIES; i++) {
		uint32_t index = 1 + o->next_root;

		o->next_root = index % OPENER_ROOTS_MAX;
		if (opener_root_is_alive(o, index))
			continue;
		opener_root_take_back(o, index);
		return index;
	}
	return OPENER_NO_ROOT;
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
	root.uid0 = opener_uid0(pid);
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

/* Finds the process's root among the pinned ones, or pins it. 0 or -errno; -ESRCH: it has ended. */
static int opener_root_take(struct opener *o, pid_t pid, const struct opener_root_key *key,
			    uint64_t start_ticks, uint32_t *ret_index)
{
	for (uint32_t i = 0; i < o->roots.len; i++) {
		if (o->roots.v[i].users && opener_same_root(&o->roots.v[i].key, key)) {
			o->roots.v[i].users++;
			*ret_index = i;
			return 0;
		}
	}
	uint32_t place = opener_free_slot(o);
	uint64_t start;

	if (place == OPENER_NO_ROOT)
		return -EMFILE;
	int r = opener_open_root(pid, &o->roots.v[place]);

	if (r)
		return r;
	/* The same process must have supplied it. */
	if (proc_start_ticks(pid, &start) || start != start_ticks) {
		opener_close_root(&o->roots.v[place]);
		return -ESRCH;
	}
	*ret_index = place;
	return 0;
}

struct opener_pinned *opener_find(const struct opener *o, pid_t pid)
{
	const uint32_t *at = hashmap_get(&o->by_pid, (uint64_t)pid);

	return at ? &o->pinned.v[*at] : NULL;
}

static void opener_unpin(struct opener *o, struct opener_pinned *p)
{
	opener_root_drop(o, p->root);
	rights_free(&p->rights);
}

struct opener_facts {
	pid_t pid;
	uint64_t start_ticks;
	struct proc_status status;
	struct rights rights;
	struct opener_root_key key;
	int key_error;
};

static void opener_drop_facts(void *facts)
{
	rights_free(&((struct opener_facts *)facts)->rights);
}

static int opener_ask_facts(void *facts)
{
	struct opener_facts *f = facts;
	uint64_t start;
	int r = proc_start_ticks(f->pid, &f->start_ticks);

	if (!r)
		r = rights_read(f->pid, &f->status, &f->rights);
	if (r)
		return r;
	f->key_error = opener_identify_root(f->pid, &f->key);
	/* The same process must have supplied all of this data. */
	r = f->key_error == -ESRCH ? -ESRCH : proc_start_ticks(f->pid, &start);
	if (!r && start != f->start_ticks)
		r = -ESRCH;
	if (r)
		opener_drop_facts(f);
	return r;
}

/* Describes the process and takes a reference to its root. 0; -ESRCH: it has ended or is ending. */
static int opener_describe(struct opener *o, pid_t pid, struct opener_pinned *ret)
{
	struct opener_facts f = {.pid = pid};
	int r = ask(pid, opener_ask_facts, opener_drop_facts, &f, sizeof(f));

	if (r)
		return r;
	struct opener_pinned p = {
		.pid = pid,
		.process = {.ns_pid = f.status.ns_pid,
			    .uid = f.status.uid,
			    .start_ticks = f.start_ticks},
		.rights = f.rights,
		.root = OPENER_NO_ROOT,
		.root_error = f.key_error,
	};

	if (!p.root_error)
		p.root_error = opener_root_take(o, pid, &f.key, f.start_ticks, &p.root);
	p.process.other_root = p.root != OPENER_NO_ROOT && p.root != OPENER_OWN_ROOT;
	if (p.root_error == -ESRCH) {
		opener_unpin(o, &p);
		return -ESRCH;
	}
	*ret = p;
	return 0;
}

/* Chooses the entry that is used again: an old one, of a process that has ended if possible. */
static uint32_t opener_oldest(struct opener *o)
{
	uint32_t index = 0;

	for (int i = 0; i < OPENER_TRIES; i++) {
		index = o->next_pinned;
		o->next_pinned = (index + 1) % OPENER_PINNED_MAX;
		if (opener_has_ended(&o->pinned.v[index]))
			break;
	}
	return index;
}

/* Adds an empty entry for pid to the table. */
static int opener_add(struct opener *o, pid_t pid, struct opener_pinned **ret)
{
	bool full = o->pinned.len == OPENER_PINNED_MAX;
	uint32_t index = full ? opener_oldest(o) : (uint32_t)o->pinned.len;

	if ((!full && vec_reserve(&o->pinned, 1)) || hashmap_put(&o->by_pid, (uint64_t)pid, index))
		return -ENOMEM;
	struct opener_pinned *p = &o->pinned.v[index];

	if (full) {
		hashmap_remove(&o->by_pid, (uint64_t)p->pid);
		opener_unpin(o, p);
	} else {
		o->pinned.len++;
	}
	*p = (struct opener_pinned){.pid = pid, .root = OPENER_NO_ROOT};
	*ret = p;
	return 0;
}

void opener_set_rights(struct opener_pinned *p, struct rights *now)
{
	bool gains = (now->all && !p->rights.all) || (p->rights.uid && now->uid != p->rights.uid);

	if (gains) {
		rights_free(now);
		return;
	}
	rights_free(&p->rights);
	p->rights = *now;
	*now = (struct rights){0};
}

void opener_note_new(struct opener *o, pid_t pid)
{
	struct opener_pinned *p = opener_find(o, pid);

	if (!p || !opener_has_ended(p))
		return;
	rights_free(&p->rights);
	p->rights = (struct rights){.uid = OPENER_NOBODY, .gid = OPENER_NOBODY};
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
		goto unpin;
	bool is_same = p && p->process.start_ticks == now.process.start_ticks;

	r = p ? 0 : opener_add(o, pid, &p);
	if (r)
		goto unpin;
	if (is_same) {
		opener_set_rights(p, &now.rights);
		now.rights = p->rights;
		p->rights = (struct rights){0};
	}
	opener_unpin(o, p);
	*p = now;
	return p->root_error;
unpin:
	opener_unpin(o, &now);
	return r;
}

int opener_process(struct opener *o, pid_t pid, struct opener_process *ret_process)
{
	const struct opener_pinned *p = opener_find(o, pid);

	if (!p)
		return -ESRCH;
	*ret_process = p->process;
	return 0;
}

int opener_get(struct opener *o, pid_t pid, struct opener_pinned **ret_p)
{
	struct opener_pinned *p = opener_find(o, pid);
	int r = 0;

	if (!p || (p->root == OPENER_NO_ROOT && p->root_error == -EMFILE)) {
		r = opener_pin(o, pid);
		p = opener_find(o, pid);
	}
	if (!p)
		return r ? r : -ESRCH;
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
