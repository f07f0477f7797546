/*
 * Resolves paths as if a directory were the root: no ".." and no absolute link leads out of it.
 * Source: openat2(2).
 */
#ifndef CONTAINER_RESOLVE_H
#define CONTAINER_RESOLVE_H

#define RESOLVE_LINKS_MAX 40 /* symbolic links in one path, like the kernel's limit */

/*
 * Opens path below root_fd as an O_PATH descriptor, which the caller closes. root_fd is a
 * directory, possibly O_PATH; a leading "/" stands for it. Uses openat2 with RESOLVE_IN_ROOT and
 * RESOLVE_NO_MAGICLINKS. 0; -ENOENT, -ENOTDIR, -ELOOP, -EACCES, -ENAMETOOLONG, -errno; -ENOSYS: the
 * kernel or a seccomp filter lacks openat2.
 */
int resolve_openat2(int root_fd, const char *path, int *ret_fd);

/*
 * Like resolve_openat2, for kernels without openat2. Opens one component at a time and never lets
 * the kernel follow a link.
 */
int resolve_by_steps(int root_fd, const char *path, int *ret_fd);

#endif
