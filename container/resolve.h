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
	bool by_steps;               /* do not use openat2 */
	const struct rights *rights; /* check these rights; NULL: only the kernel checks */
	uid_t uid;                   /* whose links in sticky directories may be followed */
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
 * directory are refused then, as with fs.protected_symlinks=1 (proc(5)). 0; errors of enter;
 * -ENOENT, -ENOTDIR, -ELOOP, -EACCES, -ENAMETOOLONG, -errno.
 */
int resolve(const struct resolve_place *place, const char *path, int *ret_fd);

#endif
