/* State of the opener. opener.c pins processes and their roots, opener_open.c opens files. */
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
	uid_t uid0;   /* uid 0 of the target's user namespace, as a uid of ours; -1: nobody */
	uint32_t users;
};

/* A slot without a root. */
#define OPENER_CLOSED_ROOT                     \
	{                                      \
		.root_fd = -1, .mounts.fd = -1 \
	}

struct opener_pinned {
	pid_t pid;
	bool ended; /* known to have ended */
	struct opener_process process;
	struct rights rights;
	uint32_t root;
	int root_error; /* error that left it without a root */
};

struct opener {
	VEC(struct opener_pinned_root) roots;
	VEC(struct opener_pinned) pinned;
	struct hashmap by_pid;
	/* Once a limit is reached, places are used again in turn, so the next one is the oldest. */
	uint32_t next_root, next_pinned;
	bool by_steps, by_mode;
	dev_t own_dev, memory_dev; /* devices of our own root and of files in memory (memfd) */
};

/* Replaces the rights of a pinned process, unless it gained them. Takes `now`. */
void opener_set_rights(struct opener_pinned *p, struct rights *now);

/* Returns the pinned process, or NULL. */
struct opener_pinned *opener_find(const struct opener *o, pid_t pid);

/*
 * Returns the pinned process; pins it first if necessary. If its root is inaccessible, fills *ret_p
 * and returns the error.
 */
int opener_get(struct opener *o, pid_t pid, struct opener_pinned **ret_p);

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
