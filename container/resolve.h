/*
 * Resolves paths as if a directory were the root: no ".." and no absolute link leads out of it.
 * Source: openat2(2).
 */
#ifndef CONTAINER_RESOLVE_H
#define CONTAINER_RESOLVE_H

#include "container/rights.h"

#include <stdbool.h>

#define RESOLVE_LINKS_MAX 40 /* symbolic links in one path, like the kernel's limit */

/* A root, and the way to resolve paths below it. */
struct resolve_place {
	/* A directory, possibly O_PATH; enter has permitted it. A leading "/" stands for it. */
	int root_fd;
	pid_t pid;                   /* the process whose path it is; 0: none */
	const struct rights *lookup; /* rights to assume for each lookup; NULL: ours */
	bool by_steps;               /* open one component at a time */
	bool no_openat2;             /* by openat */
	const struct rights *rights; /* check these by mode; NULL: only the kernel checks */
	uid_t uid;                   /* whose links in sticky directories may be followed */
	bool no_links;               /* follow only links directly in the root, with by_steps */
	/*
	 * Returns 0 if the mount of fd, which the path reaches, may be used, or -errno. Called at
	 * least once for each further mount, before any request to its file system.
	 */
	int (*enter)(void *ctx, int fd);
	void *ctx;
};

/*
 * Opens path as an O_PATH descriptor, which the caller closes. Uses openat2 with RESOLVE_IN_ROOT
 * and RESOLVE_NO_MAGICLINKS while the path stays on the mount of the root. In other cases it opens
 * one component at a time, and the kernel never follows a link. Links of others in a sticky
 * directory are refused then, as with fs.protected_symlinks=1 (proc(5)).
 *
 * A lookup in a directory that another process keeps locked may never end. So what the kernel does
 * not know already is looked up by another process (ask.h).
 *
 * 0; errors of enter; -ETIME: a lookup does not end; -ELOOP: too many links, or one component at a
 * time takes too many steps; -ENOENT, -ENOTDIR, -EACCES,
 * -ENAMETOOLONG, -errno.
 */
int resolve(const struct resolve_place *place, const char *path, int *ret_fd);

/*
 * Opens path in our own root as an O_PATH descriptor, for the process pid. The last part may be a
 * link, which is not followed. 0; -ETIME; -errno.
 */
int resolve_own(pid_t pid, const char *path, int *ret_fd);

#endif
