#include "container/opener_impl.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "container/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define OPENER_TRIES 8 /* places that are examined for one that is free */

static bool opener_same_root(const struct opener_root_key *a, const struct opener_root_key *b)
{
	return a->mnt_ns == b->mnt_ns && a->dev == b->dev && a->ino == b->ino &&
	       a->mnt_id == b->mnt_id;
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
	o->no_openat2 = true;
}

void opener_without_setuid(struct opener *o)
{
	o->by_mode = true;
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

/* Finds the process's root among the pinned ones, or pins it. 0 or -errno; -ESRCH: it has ended. */
static int opener_root_take(struct opener *o, const struct opener_facts *f, uint32_t *ret_index)
{
	for (uint32_t i = 0; i < o->roots.len; i++) {
		if (o->roots.v[i].users && opener_same_root(&o->roots.v[i].key, &f->key)) {
			o->roots.v[i].users++;
			*ret_index = i;
			return 0;
		}
	}
	uint32_t place = opener_free_slot(o);
	uint64_t start;

	if (place == OPENER_NO_ROOT)
		return -EMFILE;
	int r = opener_open_root(f->thread, &o->roots.v[place]);

	if (r)
		return r;
	/* The same process must have supplied it. */
	if (proc_start_ticks(f->pid, &start) || start != f->start_ticks) {
		opener_close_root(&o->roots.v[place]);
		return -ESRCH;
	}
	*ret_index = place;
	return 0;
}

static struct rights confined_rights;
static bool is_confined;

void opener_confine(uid_t uid)
{
	confined_rights = (struct rights){.uid = uid, .gid = OPENER_NOBODY};
	is_confined = true;
}

const struct rights *opener_confined(void)
{
	return is_confined ? &confined_rights : NULL;
}

bool opener_is_confined(void)
{
	return is_confined;
}

uid_t opener_past_uid(uid_t uid)
{
	return uid && uid == geteuid() ? uid : OPENER_NOBODY;
}

struct opener_pinned *opener_find(const struct opener *o, pid_t pid)
{
	const uint32_t *at = is_confined ? NULL : hashmap_get(&o->by_pid, (uint64_t)pid);

	return at ? &o->pinned.v[*at] : NULL;
}

static void opener_unpin(struct opener *o, struct opener_pinned *p)
{
	opener_root_drop(o, p->root);
	rights_free(&p->rights);
}

static int opener_describe_once(struct opener *o, pid_t pid, struct opener_pinned *ret)
{
	struct opener_facts f = {.pid = pid};
	int r = opener_read_facts(&f);

	if (r)
		return r;
	struct opener_pinned p = {
		.pid = pid,
		.process = {.ns_pid = f.status.ns_pid,
			    .uid = f.status.uid,
			    .start_ticks = f.start_ticks},
		.rights = f.rights,
		.uid0 = f.uid0,
		.root = OPENER_NO_ROOT,
		.root_error = f.key_error,
	};

	if (!p.root_error)
		p.root_error = opener_root_take(o, &f, &p.root);
	/* Our own root is always pinned, so one that cannot be pinned is another. */
	p.process.other_root = !f.key_error && p.root != OPENER_OWN_ROOT;
	if (p.root_error == -ESRCH) {
		opener_unpin(o, &p);
		return -ESRCH;
	}
	*ret = p;
	return 0;
}

/* Describes the process and takes a reference to its root. 0; -ESRCH: it has ended or is ending. */
static int opener_describe(struct opener *o, pid_t pid, struct opener_pinned *ret)
{
	int r = opener_describe_once(o, pid, ret);

	/* If only its main thread ended meanwhile, another thread describes it now. */
	return r == -ESRCH ? opener_describe_once(o, pid, ret) : r;
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

/* Replaces the rights of a pinned process, unless it gained them. Takes `now`. */
static void opener_set_rights(struct opener_pinned *p, struct rights *now)
{
	if (rights_exceed(now, &p->rights)) {
		rights_intersect(&p->rights, now);
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
	p->ended_as_root = false;
}

void opener_note_end(struct opener *o, pid_t pid)
{
	struct opener_pinned *p = opener_find(o, pid);
	uint64_t start;

	if (p && p->rights.all && !proc_start_ticks(pid, &start) && start == p->process.start_ticks)
		p->ended_as_root = rights_ended_as_root(pid);
}

/* Pins or updates. keep: leave an entry of an earlier process with this PID. */
static int opener_update(struct opener *o, pid_t pid, bool keep)
{
	struct opener_pinned *p = opener_find(o, pid), now;
	int r = pid > 0 && !is_confined ? opener_describe(o, pid, &now) : -ESRCH;

	if (!r && keep && p && p->process.start_ticks != now.process.start_ticks) {
		opener_unpin(o, &now);
		r = -ESRCH;
	}
	if (r == -ESRCH && p)
		p->process.ended = !p->ended_as_root;
	if (r)
		return p && r == -ESRCH ? p->root_error : r;
	bool is_same = p && p->process.start_ticks == now.process.start_ticks;

	if (is_same)
		opener_set_rights(p, &now.rights);
	/*
	 * The same process became inaccessible: it changed its user or is ending. Keep the old
	 * root, unless it is known to have another one now.
	 */
	if (is_same && now.root_error && now.root_error != -EMFILE && !now.process.other_root &&
	    p->root != OPENER_NO_ROOT) {
		p->process.uid = now.process.uid;
		p->process.ended = false;
		p->uid0 = now.uid0;
		goto unpin;
	}
	r = p ? 0 : opener_add(o, pid, &p);
	if (r)
		goto unpin;
	if (is_same) {
		rights_free(&now.rights);
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

int opener_pin(struct opener *o, pid_t pid)
{
	return opener_update(o, pid, false);
}

int opener_refresh(struct opener *o, pid_t pid)
{
	int r = opener_update(o, pid, true);
	const struct opener_pinned *p = opener_find(o, pid);

	/* If access is denied, what was read before holds, and a process needs no known root. */
	return r == -ESRCH || r == -EACCES || r == -EPERM || (p && r == p->root_error) ? 0 : r;
}

int opener_process(struct opener *o, pid_t pid, struct opener_process *ret_process)
{
	const struct opener_pinned *p = opener_find(o, pid);

	if (!p)
		return -ESRCH;
	*ret_process = p->process;
	ret_process->rights_uid = p->rights.uid;
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
