/* Paths resolved as if a directory were the root: no "..", no absolute link leads out of it. openat2(2). */
#ifndef CONTAINER_RESOLVE_H
#define CONTAINER_RESOLVE_H

#define RESOLVE_LINKS_MAX 40 /* symbolic links in one path, as the kernel's limit */

/*
 * path below root_fd (a directory, O_PATH will do) as an O_PATH descriptor, which the caller closes. A leading "/" is root_fd.
 * By openat2 with RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS. 0; -ENOENT, -ENOTDIR, -ELOOP, -EACCES, -ENAMETOOLONG, -errno;
 * -ENOSYS: the kernel or its seccomp filter has no openat2.
 */
int resolve_openat2(int root_fd, const char *path, int *ret_fd);

/* The same in steps, for kernels without openat2: no component is followed by the kernel if it is a link. */
int resolve_by_steps(int root_fd, const char *path, int *ret_fd);

#endif
