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
	int root_fd;                /* a directory, possibly O_PATH; a leading "/" stands for it */
	bool by_steps;              /* do not use openat2 */
	const struct rights *judge; /* check these rights; NULL: only the kernel checks */
};

/*
 * Opens path as an O_PATH descriptor, which the caller closes. Uses openat2 with RESOLVE_IN_ROOT
 * and RESOLVE_NO_MAGICLINKS. Without openat2, or with rights to check, it opens one component at a
 * time, and the kernel never follows a link. 0; -ENOENT, -ENOTDIR, -ELOOP, -EACCES, -ENAMETOOLONG,
 * -errno.
 */
int resolve(const struct resolve_place *place, const char *path, int *ret_fd);

#endif
