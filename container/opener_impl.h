/*
 * State of the opener. opener.c pins processes and their roots, opener_facts.c reads what the
 * kernel tells of them, and opener_open.c opens files.
 */
#ifndef CONTAINER_OPENER_IMPL_H
#define CONTAINER_OPENER_IMPL_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "container/mounts.h"
#include "container/opener.h"
#include "container/rights.h"

#define OPENER_PROC_PATH 96
#define OPENER_OWN_ROOT 0 /* index of our own root, which is always pinned */
#define OPENER_NO_ROOT UINT32_MAX
#define OPENER_LAYERS_DEPTH_MAX 4 /* overlays below overlays; the kernel permits 2 */

/*
 * Identity of a root. Two mounts of one directory differ, because different file systems may be
 * mounted below them.
 */
struct opener_root_key {
	uint64_t mnt_ns, dev, ino, mnt_id; /* mnt_id: 0 before Linux 5.8 */
};

struct opener_pinned_root {
	struct opener_root_key key;
	int root_fd; /* -1: the slot is free */
	struct mounts mounts;
	bool trusted; /* only a user with rights in our user namespace could mount there */
	uint32_t users;
};

/* A slot without a root. */
#define OPENER_CLOSED_ROOT                     \
	{                                      \
		.root_fd = -1, .mounts.fd = -1 \
	}

struct opener_pinned {
	pid_t pid;
	bool ended;         /* known to have ended */
	bool ended_as_root; /* opener_note_end */
	struct opener_process process;
	struct rights rights;
	/*
	 * Uid 0 of the process's user namespace, as a uid of ours; -1: nobody. Processes with one
	 * root can have several user namespaces.
	 */
	uid_t uid0;
	uint32_t root;
	int root_error; /* error that left it without a root */
};

struct opener {
	VEC(struct opener_pinned_root) roots;
	VEC(struct opener_pinned) pinned;
	struct hashmap by_pid;
	/* Once a limit is reached, places are used again in turn, so the next one is the oldest. */
	uint32_t next_root, next_pinned;
	bool no_openat2, by_mode;
	dev_t own_dev, memory_dev; /* devices of our own root and of files in memory (memfd) */
};

/* The rights of opener_confine; NULL: no limit. */
const struct rights *opener_confined(void);

/*
 * Reads rights and root of a process again, because it can give them up after it was pinned, or
 * pins it. May move the roots. 0, also if it has ended or access is denied; -ETIME: it does not
 * answer; -ENOMEM, -EMFILE, -errno.
 */
int opener_refresh(struct opener *o, pid_t pid);

/* Returns the pinned process, or NULL. */
struct opener_pinned *opener_find(const struct opener *o, pid_t pid);

/*
 * Returns the pinned process; pins it first if necessary. If its root is inaccessible, fills *ret_p
 * and returns the error.
 */
int opener_get(struct opener *o, pid_t pid, struct opener_pinned **ret_p);

/* Identifies a directory, which is on a mount of mnt_ns. 0 or -errno. */
int opener_root_key_of(int root_fd, uint64_t mnt_ns, struct opener_root_key *key);
/* Facts about a process, all of one time. */
struct opener_facts {
	pid_t pid;
	pid_t thread; /* one that still runs; the main thread can end before others */
	uint64_t start_ticks;
	struct proc_status status;
	struct rights rights;
	uid_t uid0;
	struct opener_root_key key;
	int key_error;
};

/* Reads them for f->pid. 0; -ESRCH: it has ended or is ending; -ETIME; -errno. */
int opener_read_facts(struct opener_facts *f);
/* Opens the root of a living process. 0, -ESRCH, -errno. */
int opener_open_root(pid_t pid, struct opener_pinned_root *root);
void opener_close_root(struct opener_pinned_root *root);

/* Whether a path that reached fd may be used; see enter in resolve_place. In opener_enter.c. */
struct opener_visit {
	struct opener *o;
	struct opener_pinned_root *root;
	const char *path;   /* counted if it is skipped; NULL: do not count */
	unsigned int depth; /* of overlays, in whose layers it is; 0: none */
};
int opener_enter(void *visit, int fd);

#endif
